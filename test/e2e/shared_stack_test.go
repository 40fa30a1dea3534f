// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestSharedStack has two instances that split one namespace by filters, and an
// AddonStack that is meant for the Clusters of both.
func TestSharedStack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	servers := map[string]*server{"one": workloadServer(t, 0), "two": workloadServer(t, 1)}
	suffix := utilrand.String(5)
	blue, green := "blue-"+suffix, "green-"+suffix
	tn.makeCluster("one", servers["one"], labels(clusterv1.WatchLabel+"="+blue))
	tn.makeCluster("two", servers["two"], labels(clusterv1.WatchLabel+"="+green))
	ofBlue, ofGreen := tn.instance("blue"), tn.instance("green")
	first, second := ofBlue.startManager("--watch-filter="+blue), ofGreen.startManager("--watch-filter="+green)
	settle := func(tn *tenant) { settleAll(tn.t, first, second) }
	marks := func(t *testing.T) map[string]mark {
		return map[string]mark{"one": servers["one"].mark(t), "two": servers["two"].mark(t)}
	}
	tn.create(tn.stackWithFilter("platform", addonsv1.SharedWatchFilter, tn.small("settings")))
	tn.awaitStatus("platform", "both instances install it", counts(2, 2), says(blue, 1, 1), says(green, 1, 1))
	settle(tn)

	tn.run("each instance has its part", func(_ *testing.T, tn *tenant) {
		revisions := tn.revisionsOf("platform")
		tn.Expect(revisions).To(HaveLen(1), "two instances that keep one spec keep it once")
		tn.Expect(revisions[0].Labels).To(HaveKeyWithValue(clusterv1.WatchLabel, addonsv1.SharedWatchFilter), "both have to see it")
		tn.awaitCluster("one", "it is the first instance's", assignedTo("platform", blue), ready("settings"))
		tn.awaitCluster("two", "it is the second instance's", assignedTo("platform", green), ready("settings"))
	})

	tn.run("at rest nobody writes", func(t *testing.T, tn *tenant) {
		start := world.hub.mark(t)
		tn.poke("one", "1")
		tn.poke("two", "1")
		settle(tn)
		NewWithT(t).Expect(append(writes(start.requests(t, ofBlue.user)), writes(start.requests(t, ofGreen.user))...)).To(BeEmpty())
	})

	tn.run("a change is kept once, and each instance writes what is its own", func(t *testing.T, tn *tenant) {
		start := world.hub.mark(t)
		tn.changeAddon("platform", "settings", withValues(map[string]any{"text": "two"}))
		tn.awaitStatus("platform", "the change reaches all", counts(2, 2), says(blue, 1, 1), says(green, 1, 1))
		settle(tn)
		byBlue, byGreen := start.requests(t, ofBlue.user), start.requests(t, ofGreen.user)
		tn.Expect(tn.revisionsOf("platform")).To(ConsistOf(HaveField("Revision", int64(1)), HaveField("Revision", int64(2))), "one of the two has made the revision")
		tn.Expect(reads(byBlue, "clusteraddons", "two", "get", "patch", "create", "delete")).To(BeEmpty(), "it is none of the first instance's")
		tn.Expect(reads(byGreen, "clusteraddons", "one", "get", "patch", "create", "delete")).To(BeEmpty(), "it is none of the second instance's")
	})

	tn.run("going back reuses the revision", func(_ *testing.T, tn *tenant) {
		before := tn.revisionsOf("platform")
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Values = nil })
		s := tn.awaitStatus("platform", "the previous spec is back", counts(2, 2))
		settle(tn)
		after := tn.revisionsOf("platform")
		tn.Expect(after).To(HaveLen(2))
		for _, r := range after {
			if r.Name == s.Status.LatestRevision {
				tn.Expect(r.Revision).To(Equal(int64(3)), "it was raised once, by one of the two")
				tn.Expect(before).To(ContainElement(HaveField("Name", r.Name)))
			}
		}
	})

	tn.run("a wrong spec is said by both, and changes nothing", func(t *testing.T, tn *tenant) {
		m := marks(t)
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}
		})
		tn.awaitStack("platform", "both have seen it", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.InvalidSelectorReason, "spec.clusterSelector")
		settle(tn)
		tn.quiet(t, m, "clusters stay as they are")
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.ClusterSelector = &metav1.LabelSelector{} })
		tn.awaitStatus("platform", "and it is good again", counts(2, 2))
	})

	tn.run("a revision that a cluster of the other filter runs is kept", func(t *testing.T, tn *tenant) {
		tn.pauseCluster("two", true)
		tn.awaitCluster("two", "it is paused", condition(addonsv1.PausedCondition, metav1.ConditionTrue, "", ""))
		runs := tn.awaitCluster("two", "it runs a revision", assignedTo("platform", green)).Spec.Stacks[0].Revision
		for i := range 13 {
			text := fmt.Sprint("edit ", i)
			tn.changeAddon("platform", "settings", withValues(map[string]any{"text": text}))
			// Else the first cluster may run an older revision, too, when the last one is kept.
			tn.awaitStatus("platform", "each edit is kept, and reaches the cluster that isn't paused", seenByAll, says(blue, 1, 1))
		}
		settle(tn)
		revisions := tn.revisionsOf("platform")
		tn.Expect(namesOf(revisions)).To(ContainElement(runs), "a cluster of the second instance runs it, which the first one can't see in its cache")
		// Where a cluster was before is kept, too. It may have said so only after the trimming.
		tn.Expect(len(revisions)).To(And(BeNumerically(">=", 12), BeNumerically("<=", 14)), "the newest, ten more, and those that are in use")
		m := marks(t)
		tn.poke("one", "2")
		start := world.hub.mark(t)
		tn.poke("two", "2")
		settle(tn)
		for _, user := range []string{ofBlue.user, ofGreen.user} {
			tn.Expect(reads(start.requests(t, user), "clusteraddons", "", "list")).To(BeEmpty(), "what can't be trimmed isn't asked about again")
		}
		tn.quiet(t, m, "a long history is no work")
		tn.pauseCluster("two", false)
		tn.awaitStatus("platform", "it catches up", counts(2, 2), says(blue, 1, 1), says(green, 1, 1))
	})

	tn.run("a Cluster changes hands", func(t *testing.T, tn *tenant) {
		settle(tn)
		m := marks(t)
		tn.refilter("one", green)
		tn.awaitCluster("one", "the second instance takes it over", assignedTo("platform", green), ready("settings"))
		tn.awaitStatus("platform", "the first instance has no Cluster left, and says so by leaving", counts(2, 2), says(green, 2, 2), silent(blue))
		settle(tn)
		tn.quiet(t, m, "a hand-over is no business of the workload cluster")
	})

	tn.run("an instance ends for good", func(t *testing.T, tn *tenant) {
		m := marks(t)
		second.Stop(t)
		tn.refilter("one", blue)
		tn.refilter("two", blue)
		tn.awaitCluster("one", "the first instance takes it over", assignedTo("platform", blue), ready("settings"))
		tn.awaitCluster("two", "and the other", assignedTo("platform", blue), ready("settings"))
		tn.awaitStatus("platform", "nobody has a Cluster with the other filter, so its entry goes", counts(2, 2), says(blue, 2, 2), silent(green))
		settleAll(t, first)
		tn.quiet(t, m, "a hand-over is no business of the workload cluster")
	})

	tn.run("the stack is meant for one filter", func(t *testing.T, tn *tenant) {
		m := marks(t)
		change(tn, tn.newStack("platform", nil), func(s *addonsv1.AddonStack) { s.Labels[clusterv1.WatchLabel] = blue })
		s := tn.awaitStatus("platform", "its status is that of one instance", func(s *addonsv1.AddonStack) error {
			if len(s.Status.Instances) > 0 {
				return fmt.Errorf("%d instances are in the status", len(s.Status.Instances))
			}
			return nil
		}, counts(2, 2))
		settleAll(t, first)
		tn.Expect(tn.revisionsOf("platform")).To(HaveEach(HaveField("Labels", HaveKeyWithValue(clusterv1.WatchLabel, blue))), "all its revisions go with it")
		tn.Expect(s.Status.LatestRevision).NotTo(BeEmpty())
		tn.quiet(t, m, "a label is no business of the workload cluster")
	})
}

// stackCheck says what is wrong with an AddonStack, nil if nothing is.
type stackCheck func(*addonsv1.AddonStack) error

// awaitStatus waits until the AddonStack passes all checks.
func (tn *tenant) awaitStatus(name, reason string, checks ...stackCheck) *addonsv1.AddonStack {
	tn.t.Helper()
	return await(tn.t, world.hub, tn.newStack(name, nil), patience, reason, func(s *addonsv1.AddonStack) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(s))
		}
		return errors.Join(errs...)
	})
}

// seenByAll expects a status of the newest spec.
func seenByAll(s *addonsv1.AddonStack) error {
	if s.Status.ObservedGeneration != s.Generation {
		return fmt.Errorf("status is about generation %d of %d", s.Status.ObservedGeneration, s.Generation)
	}
	return nil
}

// counts expects the newest spec on so many clusters, and so many of them ready.
func counts(total, ready int32) stackCheck {
	return func(s *addonsv1.AddonStack) error {
		if err := seenByAll(s); err != nil {
			return err
		}
		if got := s.Status.Clusters; got == nil || got.Total != total || got.Ready != ready {
			return fmt.Errorf("clusters are %+v, expected %d, of them %d ready", got, total, ready)
		}
		if total != ready {
			return nil
		}
		return checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
	}
}

// says expects an entry of the instance with a filter.
func says(filter string, total, ready int32) stackCheck {
	return func(s *addonsv1.AddonStack) error {
		for _, i := range s.Status.Instances {
			if i.WatchFilter != filter {
				continue
			}
			want := addonsv1.StackInstance{
				WatchFilter: filter, ObservedGeneration: s.Generation, LatestRevision: s.Status.LatestRevision,
				Clusters: &addonsv1.ClusterCounts{Total: total, Ready: ready}, Conditions: i.Conditions,
			}
			if diff := cmp.Diff(want, i); diff != "" {
				return errors.New(diff)
			}
			return nil
		}
		return fmt.Errorf("no entry of %s", filter)
	}
}

// silent expects no entry of the instance with a filter.
func silent(filter string) stackCheck {
	return func(s *addonsv1.AddonStack) error {
		for _, i := range s.Status.Instances {
			if i.WatchFilter == filter {
				return fmt.Errorf("instance %s says %+v", filter, i)
			}
		}
		return nil
	}
}

// revisionsOf reads the revisions of a stack.
func (tn *tenant) revisionsOf(stack string) []appsv1.ControllerRevision {
	tn.t.Helper()
	all := &appsv1.ControllerRevisionList{}
	must.Succeed(tn.t, world.hub.List(tn.t.Context(), all, client.InNamespace(tn.namespace), client.MatchingLabels{addonsv1.StackNameLabel: stack}))
	return all.Items
}

func namesOf(revisions []appsv1.ControllerRevision) []string {
	var names []string
	for _, r := range revisions {
		names = append(names, r.Name)
	}
	return names
}
