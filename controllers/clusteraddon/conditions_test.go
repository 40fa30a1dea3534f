// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// A revision that has begun isn't held any more: half of it may be there.
func TestPreconditionsHoldWhatHasNotBegun(t *testing.T) {
	in := &inputs.Inputs{Artifact: "sha256:1", Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "n", Name: "web"}}}
	digest := in.Digest(job.FactsUsed{})
	shut, open := []addonsv1.ObjectsCondition{{Expression: "false"}}, []addonsv1.ObjectsCondition{{Expression: "true"}}
	for name, tc := range map[string]struct {
		conditions []addonsv1.ObjectsCondition
		record     deliver.Summary
		want       bool
	}{
		"there is none":              {},
		"it isn't installed":         {conditions: shut, want: true},
		"they hold":                  {conditions: open},
		"another one is installed":   {conditions: shut, record: deliver.Summary{Status: deliver.StatusDeployed, Digest: "other"}, want: true},
		"it has begun":               {conditions: shut, record: deliver.Summary{Status: "pending-upgrade", Digest: digest}},
		"it has failed":              {conditions: shut, record: deliver.Summary{Status: "failed", Digest: digest}},
		"another one has failed":     {conditions: shut, record: deliver.Summary{Status: "failed", Digest: "other"}, want: true},
		"a certificate of it is due": {conditions: shut, record: deliver.Summary{Status: deliver.StatusDeployed, Digest: digest}, want: true},
	} {
		in.Preconditions = tc.conditions
		q := &clusterRun{Reconciler: &Reconciler{}, proofs: &releases.Proofs{}, ca: &addonsv1.ClusterAddon{}, memory: newMemory()}
		if held, err := (delivery{q}).unmetPrecondition(t.Context(), in, tc.record); (held != nil) != tc.want || err != nil {
			t.Errorf("%s: %+v, %v", name, held, err)
		}
	}
}
