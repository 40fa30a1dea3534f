// SPDX-License-Identifier: Apache-2.0

package standing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/standing"
)

func TestOf(t *testing.T) {
	set := func(kind string, status metav1.ConditionStatus) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			conditions.Set(ca, metav1.Condition{Type: kind, Status: status, Reason: "Test"})
		}
	}
	addons := []addonsv1.Addon{{Name: "web"}, {Name: "backup", Lifecycle: &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}}}
	cases := map[string]struct {
		change func(*addonsv1.ClusterAddon)
		want   standing.State
	}{
		"all is ready":                       {func(*addonsv1.ClusterAddon) {}, standing.Ready},
		"the control plane isn't up":         {set(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse), standing.Waiting},
		"the cluster can't be reached":       {set(addonsv1.ClusterReachableCondition, metav1.ConditionFalse), standing.Waiting},
		"nobody knows yet if it can":         {set(addonsv1.ClusterReachableCondition, metav1.ConditionUnknown), standing.Waiting},
		"the cluster is paused":              {set(addonsv1.PausedCondition, metav1.ConditionTrue), standing.Waiting},
		"the cluster goes":                   {set(addonsv1.DeletingCondition, metav1.ConditionTrue), standing.Waiting},
		"another stack has changed":          {func(ca *addonsv1.ClusterAddon) { ca.Generation = 3 }, standing.Ready},
		"the status is of an older revision": {func(ca *addonsv1.ClusterAddon) { ca.Status.Stacks[0].Revision = "platform-1" }, standing.Progressing},
		"the status is of no stack":          {func(ca *addonsv1.ClusterAddon) { ca.Status.Stacks = nil }, standing.Progressing},
		"the revision is an older one": {func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].Revision, ca.Status.Stacks[0].Revision = "platform-1", "platform-1"
		}, standing.Progressing},
		"an add-on failed at an older revision": {func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].Revision, ca.Status.Stacks[0].Revision = "platform-1", "platform-1"
			ca.Status.Addons[0].Phase = addonsv1.AddonFailed
		}, standing.Progressing},
		"an add-on failed at an older revision, and a removal is held": {func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].Revision, ca.Status.Stacks[0].Revision = "platform-1", "platform-1"
			ca.Spec.Stacks[0].HeldRemoval, ca.Status.Addons[0].Phase = &addonsv1.HeldRemoval{}, addonsv1.AddonFailed
		}, standing.Failed},
		"an add-on failed": {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons[0].Phase = addonsv1.AddonFailed }, standing.Failed},
		"an add-on's source has answered that it has no such version": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons[0].Phase, ca.Status.Addons[0].Reason = addonsv1.AddonPending, "ArtifactNotFound"
		}, standing.Failed},
		"an add-on's source doesn't answer": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons[0].Phase, ca.Status.Addons[0].Reason = addonsv1.AddonPending, "SourceUnavailable"
		}, standing.Progressing},
		"the source of an installed one has answered": {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons[0].Reason = "ArtifactNotFound" }, standing.Ready},
		"an add-on upgrades":                          {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons[0].Phase = addonsv1.AddonUpgrading }, standing.Progressing},
		"an add-on for upgrades isn't ready": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "backup", Stack: "platform", Phase: addonsv1.AddonInstalling})
		}, standing.Progressing},
		"an add-on isn't there yet": {func(ca *addonsv1.ClusterAddon) { ca.Status.Addons = nil }, standing.Progressing},
		"a wanted add-on's record isn't proven": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons[0].Phase, ca.Status.Addons[0].Reason = addonsv1.AddonUnassigned, "StackUnknown"
		}, standing.Progressing},
		"an add-on's record isn't proven, and the revision can't be read": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "old", Stack: "platform", Phase: addonsv1.AddonUnassigned, Reason: "StackUnknown"})
			ca.Status.Stacks[0].State = addonsv1.StackUnknown
		}, standing.Progressing},
		"another stack's add-on failed": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "x", Stack: "other", Phase: addonsv1.AddonFailed})
		}, standing.Ready},
		"an add-on that was taken off is still being removed": {func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: "old", Stack: "platform", Phase: addonsv1.AddonRemoving})
		}, standing.Progressing},
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
			set(addonsv1.AddonsReadyCondition, metav1.ConditionTrue)(ca)
			tc.change(ca)
			got, why := standing.Of(ca, "platform", "platform-2", addons)
			if got != tc.want {
				t.Errorf("Of() = %v, want %v", got, tc.want)
			}
			if got == standing.Ready && len(why) > 0 {
				t.Errorf("it is ready, and yet there is to be told: %+v", why)
			}
		})
	}
}

// TestCauses has the three clusters of a stack, whose ClusterAddons say why they aren't ready.
func TestCauses(t *testing.T) {
	addon := func(name string, phase addonsv1.AddonPhase, reason, message string) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: name, Namespace: "default", Stack: "platform", Phase: phase, Reason: reason, Message: message})
		}
	}
	is := func(kind string, status metav1.ConditionStatus, reason, message string) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			conditions.Set(ca, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	noSecret := addon("web", addonsv1.AddonPending, "ValuesNotFound", "Secret a doesn't exist")
	noDependency := addon("web", addonsv1.AddonReady, "", "dependsOn: no add-on db")
	refused := func(cluster, why string) func(*addonsv1.ClusterAddon) {
		return is(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "KubeconfigRefused", "The kubeconfig in Secret default/"+cluster+"-kubeconfig is refused: "+why)
	}
	for name, tc := range map[string]struct {
		a, b, c func(*addonsv1.ClusterAddon)
		want    []string
		ready   string // clusters that are all the same
	}{
		"nothing is wrong":           {},
		"a Secret is missing on all": {noSecret, noSecret, noSecret, []string{"a, b, c: add-on web: ValuesNotFound: Secret a doesn't exist"}, ""},
		"two other Secrets are":      {a: noSecret, b: addon("web", addonsv1.AddonPending, "ValuesNotFound", "Secret x doesn't exist"), want: []string{"a: add-on web: ValuesNotFound: Secret a doesn't exist", "b: add-on web: ValuesNotFound: Secret x doesn't exist"}},
		"a Secret of each is":        {a: noSecret, b: addon("web", addonsv1.AddonPending, "ValuesNotFound", "Secret b doesn't exist"), want: []string{"a, b: add-on web: ValuesNotFound: on a, Secret a doesn't exist"}},
		"their kubeconfigs are refused, one for another reason": {refused("a", "the user runs programs"), refused("b", "it is no YAML"), refused("c", "the user runs programs"), []string{
			"a, c: KubeconfigRefused: on a, The kubeconfig in Secret default/a-kubeconfig is refused: the user runs programs",
			"b: KubeconfigRefused: The kubeconfig in Secret default/b-kubeconfig is refused: it is no YAML"}, ""},
		"an image is, and clusters are as far": {addon("web", addonsv1.AddonInstalling, "WaitingForObjects", "Deployment web: 0/2"), addon("web", addonsv1.AddonUpgrading, "WaitingForObjects", "Deployment web: 1/2"), nil, []string{"a, b: add-on web: WaitingForObjects: on a, Deployment web: 0/2"}, ""},
		"a failure comes first": {noSecret, noSecret, addon("db", addonsv1.AddonFailed, "HookFailed", "Job migrate"), []string{
			"c: add-on db: HookFailed: Job migrate", "a, b: add-on web: ValuesNotFound: Secret a doesn't exist"}, ""},
		"what a source has answered comes after failures": {noSecret, addon("web", addonsv1.AddonPending, "ArtifactNotFound", "no chart web"), addon("db", addonsv1.AddonFailed, "HookFailed", "Job migrate"), []string{
			"c: add-on db: HookFailed: Job migrate", "b: add-on web: ArtifactNotFound: no chart web", "a: add-on web: ValuesNotFound: Secret a doesn't exist"}, ""},
		"a dependency comes last": {addon("web", addonsv1.AddonPending, "WaitingForDependency", "Waiting for add-on db to be ready"), nil, addon("db", addonsv1.AddonFailed, "HookFailed", "Job migrate"), []string{
			"c: add-on db: HookFailed: Job migrate", "a: add-on web: WaitingForDependency: Waiting for add-on db to be ready"}, ""},
		"one is down, one is paused, one's records can't be read": {
			is(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ProbeFailed", "it never answers"),
			is(addonsv1.PausedCondition, metav1.ConditionTrue, "Paused", "spec.paused of Cluster b is true"),
			is(addonsv1.AddonsReadyCondition, metav1.ConditionUnknown, "RecordsUnreadable", "Secrets is forbidden"),
			[]string{"a: ProbeFailed: it never answers", "b: Paused", "c: RecordsUnreadable: Secrets is forbidden"}, "",
		},
		"two are down, in words of their own": {is(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ProbeFailed", "https://a"), is(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ProbeFailed", "https://b"), nil, []string{"a, b: ProbeFailed: on a, https://a"}, ""},
		"two have no control plane yet": {is(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse, "ControlPlaneNotInitialized", "of Cluster a"), nil, is(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse, "ControlPlaneNotInitialized", "of Cluster c"), []string{
			"a, c: ControlPlaneNotInitialized"}, ""},
		"an installed one's dependency is missing": {noDependency, noDependency, nil, []string{"a, b: add-on web: dependsOn: no add-on db"}, "ab"},
		"a release that isn't proven is left":      {a: addon("old", addonsv1.AddonUnassigned, "StackUnknown", "it is left as it is"), want: []string{"a: add-on old: it is left as it is"}, ready: "a"},
		"what is ready comes last":                 {a: noDependency, b: noSecret, want: []string{"b: add-on web: ValuesNotFound: Secret a doesn't exist", "a: add-on web: dependsOn: no add-on db"}, ready: "a"},
		"a source of an installed one is down":     {a: addon("web", addonsv1.AddonReady, "SourceUnavailable", "Installed"), ready: "a"},
		"a newer kubeconfig can't be used":         {a: is(addonsv1.ClusterReachableCondition, metav1.ConditionTrue, "Connected", "Secret a is no kubeconfig"), want: []string{"a: Secret a is no kubeconfig"}, ready: "a"},
		"nobody knows what it runs":                {a: is(addonsv1.AddonsReadyCondition, metav1.ConditionUnknown, "AddonsUnknown", "they are being read"), want: []string{"a: AddonsUnknown: they are being read"}},
	} {
		t.Run(name, func(t *testing.T) {
			told := standing.Causes{}
			for at, change := range []func(*addonsv1.ClusterAddon){tc.a, tc.b, tc.c} {
				ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + at))}}
				ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "platform-2"}}
				ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "platform-2"}}
				if change != nil {
					change(ca)
				}
				state, why := standing.Of(ca, "platform", "platform-2", nil)
				if isReady := state == standing.Ready; isReady != (change == nil || strings.Contains(tc.ready, ca.Name)) {
					t.Errorf("%s is ready: %t", ca.Name, isReady)
				}
				for _, each := range why {
					told.Add(ca.Name, each)
				}
			}
			if got := told.Describe(); !slices.Equal(got, tc.want) {
				t.Errorf("Describe() = %q, want %q", got, tc.want)
			}
		})
	}
}

// A cause that many clusters have is told once, before one that few have.
func TestCauseOfManyClusters(t *testing.T) {
	failures := standing.Causes{}
	failed := func(name, reason, message string) standing.Cause {
		return standing.OfAddon("a", &addonsv1.AddonStatus{Name: name, Phase: addonsv1.AddonFailed, Reason: reason, Message: message})
	}
	failures.Add("a", failed("db", "RenderFailed", "no such value"))
	for i := range 40 {
		failures.Add(fmt.Sprintf("c-%02d", 39-i), failed("web", "HookFailed", "Job x failed"))
	}
	want := []string{
		"c-00, c-01, c-02, c-03, c-04, and 35 more: add-on web: HookFailed: Job x failed",
		"a: add-on db: RenderFailed: no such value",
	}
	if got := failures.Describe(); !slices.Equal(got, want) {
		t.Errorf("Describe() = %q, want %q", got, want)
	}
}
