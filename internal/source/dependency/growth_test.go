// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/chartfiles"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

func TestChartFilesThatGrow(t *testing.T) {
	yamlbombs.AreRefused(t, func(text string) error {
		name, _ := ChartOf(chartfiles.Render(map[string]string{artifact.ChartFile: "apiVersion: v2\nname: a\nversion: 1.0.0\n" + text}))
		if name != "" {
			return nil
		}
		return errors.New("it isn't read")
	})
}

// Some parsers compare all keys with each other.
func TestChartFileOfManyKeys(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: a\nversion: 1.0.0\n")
	for i := range 9000 {
		fmt.Fprintf(&text, "%x:\n", i)
	}
	files := chartfiles.Render(map[string]string{artifact.ChartFile: text.String()})
	cost.Of(func() { ChartOf(files) }).Expect(t, 200*time.Millisecond, 32<<20)
}
