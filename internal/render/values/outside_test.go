// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

// TestReadOutside reads hostile values where no worker's limit ends it, strictly and as Helm does.
func TestReadOutside(t *testing.T) {
	for name, lenient := range map[string]bool{"strict": false, "lenient": true} {
		t.Run(name, func(t *testing.T) {
			yamlbombs.AreRefused(t, func(text string) error {
				_, err := values.ReadOutside(&job.Values{Text: []byte(text), Lenient: lenient})
				return err
			})
		})
	}
}
