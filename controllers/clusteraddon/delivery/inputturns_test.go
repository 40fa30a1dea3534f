// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/must"
)

// platformAt is the status of stack "platform" at a revision.
func platformAt(revision string, state addonsv1.StackState, changed time.Time) []addonsv1.StackStatus {
	return []addonsv1.StackStatus{{Name: "platform", Revision: revision, State: state, InputsChanged: metav1.NewTime(changed)}}
}

// A change is limited only if it is of inputs that no revision has, on a cluster that had the revision before.
func TestChangesInputsAlone(t *testing.T) {
	v1, v2 := job.FactsUsed{KubeVersion: "v1.36.0"}, job.FactsUsed{KubeVersion: "v1.37.0"}
	facts, err := json.Marshal(v1)
	must.Succeed(t, err)
	type of struct {
		*addons.Cluster
		addon  *wanted.Addon
		in     *inputs.Inputs
		record *deliver.Summary
	}
	for name, tc := range map[string]struct {
		change func(of)
		want   bool
	}{
		"other values": {func(of) {}, true},
		"the same values for another version of Kubernetes": {func(is of) { is.in.Values = map[string]any{"a": "old"} }, false},
		"both":                          {func(is of) { is.record.Digest = is.in.Digest(v2) + "more" }, true},
		"without a rollout":             {func(is of) { is.addon.Rollout = nil }, false},
		"another spec: an edit":         {func(is of) { is.addon.Values = nil; is.record.Spec = "older" }, false},
		"another chart: a followed one": {func(is of) { is.in.Artifact = "sha256:2" }, false},
		"other pinned values":           {func(is of) { is.addon.Pinned = map[string]string{"Secret/db/values.yaml": "2"} }, false},
		"the revision is new here": {func(is of) {
			is.ClusterAddon.Status.Stacks = platformAt("platform-1", addonsv1.StackReady, time.Time{})
		}, false},
		"the stack is new here":        {func(is of) { is.ClusterAddon.Status.Stacks = nil }, false},
		"a record that isn't proven":   {func(is of) { is.Proofs = nil }, false},
		"another add-on has something": {func(is of) { is.record.GivenAway = "true" }, false},
		"a rollout's turn that failed": {func(is of) { is.record.Status = "failed" }, false},
		"a turn of its own that failed": {func(is of) {
			is.record.Status = "failed"
			is.ClusterAddon.Status.Stacks[0].InputsChanged = metav1.Now()
		}, true},
		"a rollout's turn was rolled back": {func(is of) { is.record.RolledBack = "sha256:3" }, false},
		"an upgrade of Kubernetes waits for it": {func(is of) {
			is.Upgrade = &upgrade.Upgrade{}
			is.addon.Lifecycle = &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeAfterControlPlane}
		}, false},
		"an upgrade of Kubernetes that doesn't wait for it": {func(is of) { is.Upgrade = &upgrade.Upgrade{} }, true},
	} {
		c := addons.Given(t)
		a, record := c.Install(t, "web", func(a *wanted.Addon) {
			a.Rollout = &addonsv1.Rollout{}
			a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: "db"}}
			a.Pinned = map[string]string{"Secret/db/values.yaml": "1"}
		})
		c.ClusterAddon.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "platform-2"}}
		c.ClusterAddon.Status.Stacks = platformAt("platform-2", addonsv1.StackReady, time.Time{})
		in := &inputs.Inputs{Addon: &a, Chart: a.Reference(c.ClusterAddon.Namespace), Artifact: record.Artifact, Values: map[string]any{"a": "old"}}
		record.Complete, record.Spec, record.Inputs, record.FactsUsed, record.Digest = true, a.SpecDigest(), a.InputsDigest(), string(facts), in.Digest(v1)
		in.Values = map[string]any{"a": "new"}
		is := of{c, &a, in, &record}
		tc.change(is)
		proofs := addons.Proofs(record)
		if c.Proofs == nil {
			proofs = &releases.Proofs{}
		}
		if got := delivery.ChangesInputsAlone(&c.Observed, proofs, in, record); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Limits are those of all clusters of the stack: the smallest of the waves, a percentage rounded up, at least one. After a
// restart, statuses say who began.
func TestAwaitTurn(t *testing.T) {
	percent := func(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
	began := time.Now().Truncate(time.Second)
	for name, tc := range map[string]struct {
		rollout addonsv1.Rollout
		// of 12 clusters, this many are on their way, and failed.
		onWay, failed int
		again, want   bool
	}{
		"the first one":                     {rollout: addonsv1.Rollout{}, want: true},
		"the second of 10%":                 {rollout: addonsv1.Rollout{}, onWay: 1, want: true},
		"the third of 10%":                  {rollout: addonsv1.Rollout{}, onWay: 2},
		"the smallest limit of a wave":      {rollout: addonsv1.Rollout{MaxConcurrent: percent("50%"), Waves: []addonsv1.RolloutWave{{MaxConcurrent: ptr.To(intstr.FromInt32(1))}}}, onWay: 1},
		"one more than the limit":           {rollout: addonsv1.Rollout{MaxConcurrent: percent("50%")}, onWay: 6},
		"one has failed":                    {rollout: addonsv1.Rollout{}, failed: 1},
		"one of 10% may fail":               {rollout: addonsv1.Rollout{MaxFailed: percent("10%")}, failed: 1, want: true},
		"two of 10%, rounded down, may not": {rollout: addonsv1.Rollout{MaxFailed: percent("10%")}, failed: 2},
		"somebody asks for it":              {rollout: addonsv1.Rollout{}, failed: 2, again: true, want: true},
		"it takes longer than it may":       {rollout: addonsv1.Rollout{ReadyWithin: &metav1.Duration{}}, onWay: 1},
	} {
		objects := []client.Object{&addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "of-another-stack"}}}
		for i := range 12 {
			ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("prod-", i)}}
			ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform"}}
			switch {
			case i >= 1 && i <= tc.onWay:
				ca.Status.Stacks = platformAt("platform-1", addonsv1.StackProgressing, began)
			case i >= 1 && i <= tc.failed:
				ca.Status.Stacks = platformAt("platform-1", addonsv1.StackDegraded, began)
			case i == 11: // it failed for another reason
				ca.Status.Stacks = platformAt("platform-1", addonsv1.StackFailed, time.Time{})
			}
			objects = append(objects, ca)
		}
		c := addons.Given(t)
		c.ClusterAddon.Name, c.Again = "prod-0", tc.again
		hub := fake.NewClientBuilder().WithScheme(addons.Scheme(t)).WithObjects(objects...).Build()
		a := addons.Wanted("platform", "web")
		a.Rollout = &tc.rollout
		unmet, err := (&delivery.InputTurns{}).Await(t.Context(), hub, &c.Observed, &a)
		if err != nil || (unmet == nil) != tc.want {
			t.Errorf("%s: %+v, %v", name, unmet, err)
		}
	}
}

// The status says when a cluster began, until its turn has ended. A cluster that falls silent keeps its turn; one that is
// paused doesn't, unless it failed.
func TestSettleInputs(t *testing.T) {
	began := time.Now().Truncate(time.Second)
	for name, tc := range map[string]struct {
		phase    addonsv1.AddonPhase
		revision string
		blocked  bool
		want     bool
	}{
		"it is on its way":             {addonsv1.AddonUpgrading, "platform-1", false, true},
		"it is ready":                  {addonsv1.AddonReady, "platform-1", false, false},
		"it has failed":                {addonsv1.AddonFailed, "platform-1", false, true},
		"it is paused on its way":      {addonsv1.AddonUpgrading, "platform-1", true, false},
		"it has failed, and is paused": {addonsv1.AddonFailed, "platform-1", true, true},
		"it has another revision":      {addonsv1.AddonFailed, "platform-2", false, false},
	} {
		ca, turns := &addonsv1.ClusterAddon{}, &delivery.InputTurns{}
		before := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Stacks: platformAt("platform-1", addonsv1.StackProgressing, began)}}
		ca.Status.Stacks = platformAt(tc.revision, "", time.Time{})
		ca.Status.Addons = []addonsv1.AddonStatus{{Name: "web", Stack: "platform", Phase: tc.phase}}
		turns.Settle(before, ca, tc.blocked)
		is := ca.Status.Stacks[0].InputsChanged
		if is.IsZero() == tc.want || tc.want && !is.Time.Equal(began) {
			t.Errorf("%s: %v", name, is)
		}
	}
}
