// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/addons"
)

// Changed terms are written, as a removal will work by them. Those of a record that isn't proven aren't.
func TestTermsAreWritten(t *testing.T) {
	record := addons.Installed("platform", "web")
	changed := record.Terms
	changed.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	for name, tc := range map[string]struct {
		terms  deliver.Terms
		proven bool
		asks   bool
	}{
		"they are the same":       {record.Terms, true, false},
		"they changed":            {changed, true, true},
		"the record isn't proven": {changed, false, false},
	} {
		c := addons.Given(t, record)
		if !tc.proven {
			c.Proofs = &releases.Proofs{}
		}
		_ = releases.Terms{Deliverer: c.Deliverer, Target: c.Workload.Target(), UID: c.ClusterAddon.UID, Proofs: c.Proofs}.Write(t.Context(), record, tc.terms)
		if (*c.Requests > 0) != tc.asks {
			t.Errorf("%s: the cluster is asked %d times", name, *c.Requests)
		}
	}
}
