// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestStateOf(t *testing.T) {
	s := &addonsv1.AddonStack{
		ObjectMeta: metav1.ObjectMeta{Name: "platform"},
		Status:     addonsv1.AddonStackStatus{LatestRevision: "platform-2"},
	}
	set := func(kind string, status metav1.ConditionStatus) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			conditions.Set(ca, metav1.Condition{Type: kind, Status: status, Reason: "Test"})
		}
	}
	addons := []addonsv1.Addon{{Name: "web"}, {Name: "backup", Lifecycle: &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}}}
	cases := map[string]struct {
		change func(*addonsv1.ClusterAddon)
		want   clusterState
	}{
		"all is ready":                       {func(*addonsv1.ClusterAddon) {}, ready},
		"the control plane isn't up":         {set(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse), waiting},
		"the cluster can't be reached":       {set(addonsv1.ClusterReachableCondition, metav1.ConditionFalse), waiting},
		"nobody knows yet if it can":         {set(addonsv1.ClusterReachableCondition, metav1.ConditionUnknown), waiting},
		"the cluster is paused":              {set(addonsv1.PausedCondition, metav1.ConditionTrue), waiting},
		"the cluster goes":                   {set(addonsv1.DeletingCondition, metav1.ConditionTrue), waiting},
		"another stack has changed":          {func(ca *addonsv1.ClusterAddon) { ca.Generation = 3 }, ready},
		"the status is of an older revision": {func(ca *addonsv1.ClusterAddon) { ca.Status.Stacks[0].Revision = "platform-1" }, progressing},
		"the status is of no stack":          {func(ca *addonsv1.ClusterAddon) { ca.Status.Stacks = nil }, progressing},
		"the revision is an older one": {func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].Revision, ca.Status.Stacks[0].Revision = "platform-1", "platform-1"
		}, progressing},
		"an add-on failed":   {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons[0].Phase = addonsv1.AddonFailed }, failed},
		"an add-on upgrades": {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons[0].Phase = addonsv1.AddonUpgrading }, progressing},
		"an add-on for upgrades isn't ready": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "backup", Stack: "platform", Phase: addonsv1.AddonInstalling})
		}, progressing},
		"an add-on isn't there yet": {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons = nil }, progressing},
		"another stack's add-on failed": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "x", Stack: "other", Phase: addonsv1.AddonFailed})
		}, ready},
		"an add-on that was taken off is still being removed": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "old", Stack: "platform", Phase: addonsv1.AddonRemoving})
		}, progressing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{
				ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 2},
				Spec:       addonsv1.ClusterAddonSpec{Stacks: []addonsv1.StackRevision{{Name: "platform", Revision: "platform-2"}}},
				Status: addonsv1.ClusterAddonStatus{
					ObservedGeneration: 2,
					Stacks:             []addonsv1.StackStatus{{Name: "platform", Revision: "platform-2"}},
					Addons:             []addonsv1.AddonStatus{{Name: "web", Namespace: "default", Stack: "platform", Phase: addonsv1.AddonReady}},
				},
			}
			tc.change(ca)
			if got, _ := stateOf(ca, s, addons); got != tc.want {
				t.Errorf("stateOf() = %v, want %v", got, tc.want)
			}
		})
	}
}

// A condition's message has at most 32768 bytes, however many clusters fail for however many causes.
func TestClustersReadyStaysShort(t *testing.T) {
	failures := causes{}
	for i := range 5000 {
		failures.add(fmt.Sprintf("cluster-%04d", i), &addonsv1.AddonStatus{Name: "web", Reason: "HookFailed", Message: fmt.Sprint(i, strings.Repeat("x", 1024))})
	}
	c := clustersReady(&addonsv1.ClusterCounts{Total: 5000, Failed: 5000}, failures.describe())
	if len(c.Message) > 8192 || !strings.Contains(c.Message, "and 4997 more") || !strings.Contains(c.Message, "cluster-0000") {
		t.Errorf("message of %d bytes: %.200s", len(c.Message), c.Message)
	}
}

// A cause that many clusters have is told once, before one that few have.
func TestCauses(t *testing.T) {
	failures := causes{}
	failures.add("a", &addonsv1.AddonStatus{Name: "db", Reason: "RenderFailed", Message: "no such value"})
	for i := range 40 {
		failures.add(fmt.Sprintf("c-%02d", 39-i), &addonsv1.AddonStatus{Name: "web", Reason: "HookFailed", Message: "Job x failed"})
	}
	want := []string{
		"c-00, c-01, c-02, c-03, c-04, and 35 more: add-on web: HookFailed: Job x failed",
		"a: add-on db: RenderFailed: no such value",
	}
	if got := failures.describe(); !slices.Equal(got, want) {
		t.Errorf("describe() = %q, want %q", got, want)
	}
}
