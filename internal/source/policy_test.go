// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// TestCosignIsForRegistries asks nobody: neither for the keys nor for the chart.
func TestCosignIsForRegistries(t *testing.T) {
	sources, _ := remoteSources(t, Options{})
	for name, ref := range map[string]reference.Reference{
		"helm":   inRepository("https://charts.invalid", "1.0.0"),
		"github": {Namespace: "team-a", Chart: addonsv1.ChartSource{Version: "1.0.0", GitHub: &addonsv1.GitHubSource{URL: "https://git.invalid/o/n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			ref.Chart.Verify = byKeys("cosign.pub")
			_, err := sources.Fetch(t.Context(), ref, digestOfArchive(nil))
			expectError(t, err, failure.VerificationPolicyInvalid, "chart.verify.cosign: cosign is for oci; use provenance")
		})
	}
}
