// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

// TestInProcess reads hostile values where no worker's limit ends it, strictly and as Helm does.
func TestInProcess(t *testing.T) {
	for name, lenient := range map[string]bool{"strict": false, "lenient": true} {
		t.Run(name, func(t *testing.T) {
			yamlbombs.AreRefused(t, func(text string) error {
				_, err := layers.InProcess{}.Values(t.Context(), job.Values{Text: []byte(text), Lenient: lenient})
				return err
			})
		})
	}
}
