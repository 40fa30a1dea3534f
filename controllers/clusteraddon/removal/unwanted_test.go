// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
)

// Add-ons whose removal somebody has to confirm stay, and nothing else that its stack has no more.
func TestHeldAddonsStay(t *testing.T) {
	web, other, going := addons.Installed("platform", "web"), addons.Installed("platform", "other"), addons.Installed("platform", "going")
	going.Status = deliver.StatusUninstalling
	c := addons.Given(t, web, other, going)
	c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", HeldRemoval: &addonsv1.HeldRemoval{Addons: []string{"apps/going", "apps/web"}}}}
	leaving, kept := partition(c)
	if len(kept) != 1 || kept[0].Name != "web" {
		t.Errorf("kept: %+v", kept)
	}
	if len(leaving) != 2 || slices.ContainsFunc(leaving, func(r deliver.Summary) bool { return r.Name == "web" }) {
		t.Errorf("leaving: %+v", leaving)
	}
}

// A stack that is deleted goes with its revision, in any order, before it is taken out of the assignment. Nobody is told
// then that it can't be read, unless it stays so.
func TestStackThatHasJustGoneIsNoQuestion(t *testing.T) {
	now, cluster := time.Unix(1000, 0), member.OfCluster(&clusterv1.Cluster{})
	spec := &addonsv1.AddonStackSpec{}
	of := addonsv1.StackRevision{Name: "platform", Revision: "platform-1"}
	record := addons.Installed("platform", "web")
	for name, tc := range map[string]struct {
		stack gather.Stack
		told  bool // once it stays so
	}{
		"its revision is left": {gather.Stack{StackRevision: of, Spec: spec}, true},
		"its revision is gone": {gather.Stack{StackRevision: of, Written: &addonsv1.AddonStack{}}, true},
		"both are gone":        {gather.Stack{StackRevision: of}, true},
		"it is gone for all":   {gather.Stack{StackRevision: of, Deleted: true}, false},
		"its removal is held": {gather.Stack{
			StackRevision: addonsv1.StackRevision{Name: "platform", Revision: "platform-1", HeldRemoval: &addonsv1.HeldRemoval{}}, Spec: spec,
		}, false},
	} {
		since := map[string]time.Time(nil)
		for _, after := range []time.Duration{0, time.Second, 2 * gather.AssignmentGrace} {
			c := addons.Given(t, record)
			c.ClusterAddon.Status.Addons = []addonsv1.AddonStatus{releases.Status(record, addonsv1.AddonReady)}
			c.Stacks = gather.Resolve([]gather.Stack{tc.stack}, cluster, since, now.Add(after))
			since = c.OutdatedSince
			leaving, kept := partition(c)
			told := after > gather.AssignmentGrace && tc.told
			if len(leaving) > 0 || len(kept) != 1 || (kept[0].Reason == reasons.StackUndecided) != told {
				t.Errorf("%s, after %s: leaving %v, kept %+v", name, after, leaving, kept)
			}
		}
	}
}

// An add-on that is taken out of a stack, and put into it again before it was removed, stays: the assignment is given time to follow.
func TestAddonThatIsInItsStackAgain(t *testing.T) {
	now, cluster := time.Unix(1000, 0), member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}})
	removing := addons.Installed("platform", "web")
	removing.Status = deliver.StatusUninstalling
	for name, tc := range map[string]struct {
		record     deliver.Summary
		generation int64
		written    []addonsv1.Addon
		since      time.Duration
		stays      bool
	}{
		"it is":                       {addons.Installed("platform", "web"), 2, []addonsv1.Addon{{Name: "web", Namespace: "apps"}}, 0, true},
		"it has been for a while":     {addons.Installed("platform", "web"), 2, []addonsv1.Addon{{Name: "web", Namespace: "apps"}}, gather.AssignmentGrace, false},
		"the assignment is of that":   {addons.Installed("platform", "web"), 1, []addonsv1.Addon{{Name: "web", Namespace: "apps"}}, 0, false},
		"its removal has begun":       {removing, 2, []addonsv1.Addon{{Name: "web", Namespace: "apps"}}, 0, false},
		"one of another namespace is": {addons.Installed("platform", "web"), 2, []addonsv1.Addon{{Name: "web"}}, 0, false},
		"it isn't":                    {addons.Installed("platform", "web"), 2, nil, 0, false},
	} {
		written := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", Generation: tc.generation}}
		written.Spec = addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: tc.written}
		assigned := addonsv1.StackRevision{Name: "platform", Revision: "platform-1"}
		spec := written.Spec
		spec.Addons = nil
		c := addons.Given(t, tc.record)
		c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{assigned}
		c.Stacks = gather.Resolve([]gather.Stack{{StackRevision: assigned, Written: written, Spec: &spec, Generation: 1}}, cluster,
			map[string]time.Time{"platform": now.Add(-tc.since)}, now)
		if leaving, kept := partition(c); len(leaving)+len(kept) != 1 || (len(kept) == 1) != tc.stays {
			t.Errorf("%s: leaving %v, kept %+v", name, leaving, kept)
		}
	}
}

// Nothing is removed of a stack that is paused after it left the cluster, not even if its removal has begun.
func TestPausedStackRemovesNothingOfWhatItLeft(t *testing.T) {
	going := addons.Installed("platform", "web")
	going.Status = deliver.StatusUninstalling
	for name, tc := range map[string]struct {
		record           deliver.Summary
		paused, unproven bool
		reason           string // "" if it leaves
	}{
		"it is paused":               {record: addons.Installed("platform", "web"), paused: true, reason: reasons.StackPaused},
		"and the removal has begun":  {record: going, paused: true, reason: reasons.StackPaused},
		"it is resumed":              {record: addons.Installed("platform", "web")},
		"the record may name anyone": {record: addons.Installed("platform", "web"), paused: true, unproven: true, reason: reasons.StackUnknown},
	} {
		c := addons.Given(t, tc.record)
		if tc.paused {
			c.Paused = sets.New("platform")
		}
		if tc.unproven {
			c.Proofs = &releases.Proofs{}
		}
		leaving, kept := partition(c)
		if tc.reason == "" && len(leaving) != 1 || tc.reason != "" && (len(kept) != 1 || kept[0].Reason != tc.reason) {
			t.Errorf("%s: leaving %v, kept %+v", name, leaving, kept)
		}
	}
}

// The status of an add-on that stays says why, also if it is its first one; and not that its stack is paused once a person is asked
// to confirm the removal: then a confirmation ends the pause of a stack that is gone.
func TestStatusOfWhatStays(t *testing.T) {
	paused := addonsv1.AddonStatus{Stack: "platform", Name: "web", Phase: addonsv1.AddonRemoving, Reason: reasons.StackPaused}
	for name, tc := range map[string]struct {
		was   []addonsv1.AddonStatus
		state decide.StackState
		want  string
	}{
		"it has none yet":                           {nil, decide.JustGone, reasons.StackUndecided},
		"it waits, and the stack may be back":       {[]addonsv1.AddonStatus{paused}, decide.JustGone, reasons.StackPaused},
		"it waits, and a person is to confirm that": {[]addonsv1.AddonStatus{paused}, decide.Held, reasons.StackUndecided},
	} {
		record := addons.Installed("platform", "web")
		c := addons.Given(t, record)
		for i := range tc.was {
			tc.was[i].Namespace = record.Namespace
		}
		c.ClusterAddon.Status.Addons, c.Unresolved = tc.was, map[string]gather.Unresolved{"platform": {State: tc.state, Why: "Because"}}
		if _, kept := partition(c); len(kept) != 1 || kept[0].Reason != tc.want || kept[0].Phase == "" {
			t.Errorf("%s: %+v", name, kept)
		}
	}
}

// Another management cluster continues with the release that says so, and with no other one.
func TestTakenOverIsOneRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, addon, backup string
		leaves                   bool
	}{
		"it is taken over":       {namespace: "apps", addon: "web"},
		"another add-on":         {namespace: "apps", addon: "db", leaves: true},
		"another namespace":      {namespace: "other", addon: "web", leaves: true},
		"a backup's status says": {namespace: "apps", addon: "web", backup: "other", leaves: true},
	} {
		record := addons.Installed("platform", tc.addon)
		record.Namespace = tc.namespace
		c := addons.Given(t, record)
		c.ClusterAddon.UID = "1"
		c.ClusterAddon.Status = addonsv1.ClusterAddonStatus{ObservedUID: cmp.Or(types.UID(tc.backup), "1"), Addons: []addonsv1.AddonStatus{
			{Namespace: "apps", Name: "web", Reason: deliver.ReasonReleaseTakenOver}, {Namespace: "apps", Name: "db"},
		}}
		if leaving, kept := partition(c); len(leaving) == 1 != tc.leaves {
			t.Errorf("%s: leaving %v, kept %+v", name, leaving, kept)
		}
	}
}

// TestServiceAccountOfWhatIsRemoved has records that somebody in the workload cluster may have written.
func TestServiceAccountOfWhatIsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		written, found string
		uid            types.UID // that the status is about
		want           string
		// mayGo says whether it is removed where an account is required.
		mayGo bool
	}{
		"the record is as it was written": {"deployer", "deployer", "1", "deployer", true},
		"the record has another":          {"deployer", "admin", "1", "", true},
		"the record has lost it":          {"deployer", "", "1", "", false},
		"the status is from a backup":     {"deployer", "deployer", "previous", "", true},
		"it was delivered without any":    {"", "", "1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			written := deliver.Summary{
				Release: deliver.Release{Namespace: "web", Name: "web"}, Complete: true, Content: "sha256:1",
				Terms: deliver.Terms{Stack: "platform", ServiceAccount: tc.written},
			}
			found := written
			found.ServiceAccount = tc.found
			ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{
				ObservedUID: tc.uid, Addons: []addonsv1.AddonStatus{{Name: "web", Namespace: "web", Stack: "platform", RecordDigest: written.Proof()}},
			}}
			ca.UID = "1"
			for required, mayGo := range map[bool]bool{false: true, true: tc.mayGo} {
				o, proofs := &gather.Observed{ClusterAddon: ca, Installed: addons.Records(found)}, &releases.Proofs{}
				proofs.Restore(ca, ca.UID)
				leaving, kept := removal.Unwanted{Observed: o, Proofs: proofs, NeedsAccount: required}.Partition()
				if got := append(kept, addonsv1.AddonStatus{ServiceAccountName: tc.want})[0].ServiceAccountName; got != tc.want {
					t.Errorf("ServiceAccount %q in the status, expected %q", got, tc.want)
				}
				if refused := len(kept) == 1 && kept[0].Reason == reasons.ServiceAccountRequired; refused && mayGo {
					t.Errorf("required: %t: may be removed: %t, %v", required, !refused, leaving)
				}
				if isProven := reflect.DeepEqual(found, written) && tc.uid == "1"; proofs.Prove(found) != isProven {
					t.Errorf("proven: %t", !isProven)
				}
			}
		})
	}
}
