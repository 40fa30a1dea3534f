// SPDX-License-Identifier: Apache-2.0

package rendering_test

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/addons"
)

// What is installed is left alone, as long as it is of just these inputs, and no certificate is due.
func TestSettled(t *testing.T) {
	now := time.Unix(1000, 0)
	in := &inputs.Inputs{Artifact: "sha256:1", Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "n", Name: "r"}}}
	digest := in.Digest(job.FactsUsed{})
	for name, tc := range map[string]struct {
		status, digest string
		renewAt        time.Time
		unproven, want bool
	}{
		"as it is wanted":            {status: deliver.StatusDeployed, digest: digest, want: true},
		"nothing proves it":          {status: deliver.StatusDeployed, digest: digest, unproven: true},
		"of other inputs":            {status: deliver.StatusDeployed, digest: "other"},
		"it failed":                  {status: "failed", digest: digest},
		"a certificate is due":       {status: deliver.StatusDeployed, digest: digest, renewAt: now},
		"a certificate is due later": {status: deliver.StatusDeployed, digest: digest, renewAt: now.Add(time.Second), want: true},
	} {
		record := addons.Provable(deliver.Summary{Owned: true, Status: tc.status, Digest: tc.digest, RenewAt: tc.renewAt})
		q := rendering.Renderer{Now: now, Proofs: addons.Proofs(record)}
		if tc.unproven {
			q.Proofs = addons.Proofs()
		}
		if got, err := q.Settled(t.Context(), in, record); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
