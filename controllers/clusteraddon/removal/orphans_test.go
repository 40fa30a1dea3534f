// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/addons"
)

const orphan = addonsv1.DeletionPolicyOrphan

// termsOf returns what brings changed terms into the records of a cluster.
func termsOf(c *addons.Cluster) releases.Terms {
	return releases.Terms{Deliverer: c.Deliverer, Target: c.Workload.Target(), UID: c.ClusterAddon.UID, Proofs: c.Proofs}
}

// The status says that add-ons are left behind if each record was seen that says so.
func TestOrphansAreRecorded(t *testing.T) {
	told, untold := addons.Installed("platform", "told"), addons.Installed("platform", "untold")
	told.DeletionPolicy, untold.DeletionPolicy = orphan, addonsv1.DeletionPolicyDelete
	going, foreign, other := untold, untold, addons.Installed("other", "web")
	going.Complete, going.Status = true, "uninstalling"
	for name, tc := range map[string]struct {
		policy   addonsv1.DeletionPolicy
		records  []deliver.Summary
		unproven bool
		addons   []addonsv1.AddonStatus
		want     addonsv1.DeletionPolicy
	}{
		"all say so":                          {policy: orphan, records: []deliver.Summary{told, other}, want: orphan},
		"the stack deletes":                   {records: []deliver.Summary{told}},
		"one doesn't":                         {policy: orphan, records: []deliver.Summary{told, untold}},
		"there are none":                      {policy: orphan, want: orphan},
		"one isn't ours, and stays anyway":    {policy: orphan, records: []deliver.Summary{told, foreign}, unproven: true, want: orphan},
		"a removal has begun":                 {policy: orphan, records: []deliver.Summary{told, going}, want: orphan},
		"one was installed, and isn't seen":   {policy: orphan, records: []deliver.Summary{told}, addons: []addonsv1.AddonStatus{{Name: "new", Namespace: "apps", Stack: "platform", Revision: 1}}},
		"one isn't installed yet":             {policy: orphan, records: []deliver.Summary{told}, addons: []addonsv1.AddonStatus{{Name: "new", Namespace: "apps", Stack: "platform"}}, want: orphan},
		"another stack's isn't seen, at most": {policy: orphan, addons: []addonsv1.AddonStatus{{Name: "new", Namespace: "apps", Stack: "other", Revision: 1}}, want: orphan},
	} {
		t.Run(name, func(t *testing.T) {
			c := addons.Given(t, tc.records...)
			if tc.unproven {
				c.Proofs = addons.Proofs(told)
			}
			c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: tc.policy}, {Name: "other"}}
			c.ClusterAddon.Status.Stacks, c.ClusterAddon.Status.Addons = []addonsv1.StackStatus{{Name: "platform"}, {Name: "other"}}, tc.addons
			removal.NoteOrphans(&c.Observed, c.Proofs)
			want := []addonsv1.StackStatus{{Name: "platform", RecordedDeletionPolicy: tc.want}, {Name: "other"}}
			if diff := cmp.Diff(want, c.ClusterAddon.Status.Stacks); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The status doesn't say so any more before a record is written that says otherwise.
func TestOrphansAreForgottenFirst(t *testing.T) {
	for policy, want := range map[addonsv1.DeletionPolicy]addonsv1.DeletionPolicy{"": "", addonsv1.DeletionPolicyDelete: "", orphan: orphan} {
		c := addons.Given(t)
		c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: policy}}
		c.ClusterAddon.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", RecordedDeletionPolicy: orphan}}
		if ends := removal.NoteOrphans(&c.Observed, c.Proofs); ends != (want == "") || c.ClusterAddon.Status.Stacks[0].RecordedDeletionPolicy != want {
			t.Errorf("%q: %t, %+v", policy, ends, c.ClusterAddon.Status.Stacks)
		}
	}
}

// An add-on isn't removed while its record can't be told that it is left behind.
func TestUntoldOrphanIsNotRemoved(t *testing.T) {
	record := addons.Installed("platform", "web")
	record.DeletionPolicy = addonsv1.DeletionPolicyDelete
	c, q := given(t, record)
	c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: orphan}}
	q.Leaving = []deliver.Summary{record}
	if err := removal.TellOrphans(t.Context(), &c.Observed, termsOf(c)); err == nil {
		t.Fatal("the cluster answers")
	}
	before := *c.Requests
	var all result.All
	q.Remove(t.Context(), nil, &all)
	if *c.Requests != before || len(all.Statuses) != 1 {
		t.Errorf("asked for %d times, %+v", *c.Requests-before, all.Statuses)
	}
}

// A paused stack tells no record anything.
func TestPausedStackTellsNothing(t *testing.T) {
	record := addons.Installed("platform", "web")
	c := addons.Given(t, record)
	c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: orphan}}
	c.Paused = sets.New("platform")
	if err := removal.TellOrphans(t.Context(), &c.Observed, termsOf(c)); err != nil || *c.Requests > 0 {
		t.Errorf("%v, asked for %d times", err, *c.Requests)
	}
}
