// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// mover is a fleet of clusters, named move-0 and so on, with the label stage=0 and so on. Add-on "moved" generates a text
// once, and moves between stacks.
type mover struct {
	*tenant
	path      string
	servers   []*server
	deletions []func() []string
	before    []map[string]corev1.ConfigMap
}

func newMover(t *testing.T, clusters int) *mover {
	t.Helper()
	m := &mover{tenant: newTenant(t)}
	m.path = m.writeChart("settings", "1.0.0", rollingChart)
	for i := range clusters {
		m.servers = append(m.servers, workloadServer(t, i))
		m.makeCluster(fmt.Sprint("move-", i), m.servers[i], labels("env=prod", fmt.Sprint("stage=", i)))
	}
	m.startManager()
	return m
}

// stackOf returns a stack with an add-on of its own, and maybe the one that moves.
func (m *mover) stackOf(name string, has bool, more ...func(*addonsv1.AddonStackSpec)) *addonsv1.AddonStack {
	s := m.newStack(name, labels("env=prod"), m.addon("base-"+name, m.path, withValues(map[string]any{"text": name})))
	if has {
		s.Spec.Addons = append(s.Spec.Addons, m.addon("moved", m.path, withValues(map[string]any{"text": "moved"})))
	}
	for _, change := range more {
		change(&s.Spec)
	}
	return s
}

// apply gives a stack that is there the spec of another one.
func (m *mover) apply(s *addonsv1.AddonStack) {
	m.t.Helper()
	m.changeStack(s.Name, func(spec *addonsv1.AddonStackSpec) { *spec = *s.Spec.DeepCopy() })
}

// applyOneByOne does so with two stacks, as kubectl apply does: the first one is in force before the second one is sent. It
// reports whether the second one came within the time that one command takes.
func (m *mover) applyOneByOne(first, second *addonsv1.AddonStack) bool {
	m.t.Helper()
	was := m.latestRevision(first.Name)
	began := time.Now()
	m.apply(first)
	poll(m.t, patience, "the revision is kept", func() error {
		if m.latestRevision(first.Name) == was {
			return fmt.Errorf("it is %s yet", was)
		}
		return nil
	})
	for time.Since(began) < time.Second && stack.AssignedRevision(m.assigned("move-0").Spec.Stacks, first.Name) == was { // mostly it follows at once
		time.Sleep(20 * time.Millisecond)
	}
	m.apply(second)
	return time.Since(began) < 3*time.Second
}

// assigned returns the ClusterAddon of a cluster.
func (m *mover) assigned(cluster string) *addonsv1.ClusterAddon {
	m.t.Helper()
	ca := m.clusterAddon(cluster)
	must.Succeed(m.t, world.hub.Get(m.t.Context(), m.key(cluster), ca))
	return ca
}

// remember notes what is on the clusters.
func (m *mover) remember() {
	m.t.Helper()
	m.before, m.deletions = nil, nil
	for _, s := range m.servers {
		m.before = append(m.before, m.configMapsOn(s))
		m.deletions = append(m.deletions, m.watchDeletions(s))
	}
}

// expectUnharmed expects that nothing was deleted since, and that generated texts are the same.
func (m *mover) expectUnharmed(reason string) {
	m.t.Helper()
	for i, s := range m.servers {
		m.Expect(m.deletions[i]()).To(BeEmpty(), reason)
		now := m.configMapsOn(s)
		m.Expect(uidsOf(now)).To(Equal(uidsOf(m.before[i])), reason)
		m.Expect(m.before[i]).To(HaveKey("moved-made"))
		m.Expect(now["moved-made"].Data).To(Equal(m.before[i]["moved-made"].Data), reason)
	}
}

// awaitHolder waits until a stack has the add-on on all clusters, and no other one does.
func (m *mover) awaitHolder(holder, reason string) {
	m.t.Helper()
	for i := range m.servers {
		m.awaitCluster(fmt.Sprint("move-", i), reason, func(ca *addonsv1.ClusterAddon) error {
			for _, a := range ca.Status.Addons {
				if a.Name == "moved" && (a.Stack != holder || a.Phase != addonsv1.AddonReady) {
					return fmt.Errorf("AddonStack %s has it: %s, %s", a.Stack, a.Phase, a.Reason)
				}
			}
			if !slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == "moved" }) {
				return fmt.Errorf("it is gone")
			}
			return nil
		})
	}
}

// TestMovesInTwoRequests moves an add-on between two stacks without rollouts, there and back, by lists of add-ons, and by
// selectors. Of the two requests, the first one is in force before the second one comes.
func TestMovesInTwoRequests(t *testing.T) {
	t.Parallel()
	nowhere := func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels("env=nowhere") }
	for name, c := range map[string]struct {
		clusters   int
		with, none func(m *mover, name string) *addonsv1.AddonStack
	}{
		"from list to list": {1, func(m *mover, name string) *addonsv1.AddonStack { return m.stackOf(name, true) },
			func(m *mover, name string) *addonsv1.AddonStack { return m.stackOf(name, false) }},
		"on two clusters": {2, func(m *mover, name string) *addonsv1.AddonStack { return m.stackOf(name, true) },
			func(m *mover, name string) *addonsv1.AddonStack { return m.stackOf(name, false) }},
		"by selectors": {1, func(m *mover, name string) *addonsv1.AddonStack {
			s := m.stackOf(name, true)
			s.Spec.Addons = s.Spec.Addons[1:]
			return s
		}, func(m *mover, name string) *addonsv1.AddonStack {
			s := m.stackOf(name, true, nowhere)
			s.Spec.Addons = s.Spec.Addons[1:]
			return s
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMover(t, c.clusters)
			from, to := "one", "two"
			m.create(c.with(m, from))
			m.create(c.none(m, to))
			m.awaitHolder(from, "it is installed")
			for i := range 4 {
				m.settle()
				m.remember()
				first, second := c.none(m, from), c.with(m, to)
				if i%2 == 1 { // the one that gets it comes first
					first, second = second, first
				}
				inTime := m.applyOneByOne(first, second)
				m.awaitHolder(to, "it moved")
				m.settle()
				if inTime {
					m.expectUnharmed(fmt.Sprint("move ", i))
				}
				from, to = to, from
			}
			last := c.none(m, from)
			last.Spec.RemovalLimit = ptr.To(intstr.FromString("100%"))
			m.apply(last)
			for _, s := range m.servers {
				m.expectRemoved(t, s, "moved")
			}
		})
	}
}

// staged has a stack begin with the cluster of a number.
func staged(number int) func(*addonsv1.AddonStackSpec) {
	return rollsOut(addonsv1.Rollout{
		OnFailure: addonsv1.RolloutRollBack, MinReady: &metav1.Duration{},
		Waves: []addonsv1.RolloutWave{{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: labels(fmt.Sprint("stage=", number))}}},
	})
}

// awaitRollout waits until the rollout of a stack is in a phase.
func (m *mover) awaitRollout(name string, phase addonsv1.RolloutPhase, reason string) {
	m.t.Helper()
	await(m.t, world.hub, m.newStack(name, nil), patience, reason, func(s *addonsv1.AddonStack) error {
		is := ptr.Deref(s.Status.Rollout, addonsv1.RolloutStatus{})
		if s.Status.ObservedGeneration != s.Generation || is.Phase != phase {
			return fmt.Errorf("%+v: %s", is, conditions.GetMessage(s, addonsv1.RolledOutCondition))
		}
		return nil
	})
}

// TestMovesInRollouts moves an add-on between two stacks with rollouts that begin with other clusters. Both end, whichever
// is written first, also where two add-ons change places.
func TestMovesInRollouts(t *testing.T) {
	t.Parallel()
	swapped := func(m *mover, name string, has bool, canary int) *addonsv1.AddonStack {
		s := m.stackOf(name, has, staged(canary))
		if !has {
			s.Spec.Addons = append(s.Spec.Addons, m.addon("back", m.path, withValues(map[string]any{"text": "back"})))
		}
		return s
	}
	plain := func(m *mover, name string, has bool, canary int) *addonsv1.AddonStack {
		return m.stackOf(name, has, staged(canary))
	}
	for name, c := range map[string]struct {
		spec    func(m *mover, name string, has bool, canary int) *addonsv1.AddonStack
		dst     int // its canary
		dstLast bool
	}{
		"the stack that gets it comes first":  {plain, 1, false},
		"the stack that loses it comes first": {plain, 1, true},
		"they have the same canary":           {plain, 0, true},
		"two add-ons change places":           {swapped, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMover(t, 2)
			for _, s := range []*addonsv1.AddonStack{c.spec(m, "src", true, 0), c.spec(m, "dst", false, c.dst)} {
				s.Spec.Rollout = nil
				m.create(s)
			}
			m.awaitHolder("src", "it is installed")
			m.apply(c.spec(m, "src", true, 0))
			m.apply(c.spec(m, "dst", false, c.dst))
			m.awaitRollout("src", addonsv1.RolloutCompleted, "a rollout is no change")
			m.awaitRollout("dst", addonsv1.RolloutCompleted, "a rollout is no change")
			m.settle()
			m.remember()
			first, second := c.spec(m, "dst", true, c.dst), c.spec(m, "src", false, 0)
			if c.dstLast {
				first, second = second, first
			}
			inTime := m.applyOneByOne(first, second)
			m.awaitRollout("src", addonsv1.RolloutCompleted, "it waits for nobody for ever")
			m.awaitRollout("dst", addonsv1.RolloutCompleted, "it waits for nobody for ever")
			m.awaitHolder("dst", "it moved")
			m.awaitReady("src", "it has all but the one that moved")
			m.awaitReady("dst", "it has the one that moved")
			m.settle()
			if inTime || !c.dstLast {
				m.expectUnharmed(name)
			}
		})
	}
}

// TestMoveIntoARejectedRevision moves an add-on into a stack whose new revision is bad, and goes back. The add-on stays on
// all clusters while that spec is written.
func TestMoveIntoARejectedRevision(t *testing.T) {
	long.Test(t)
	t.Parallel()
	for name, canary := range map[string]int{"another canary": 1, "the same canary": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMover(t, 2)
			m.create(m.stackOf("src", true))
			m.create(m.stackOf("dst", false))
			m.awaitHolder("src", "it is installed")
			m.apply(m.stackOf("src", true, staged(0)))
			m.apply(m.stackOf("dst", false, staged(canary)))
			m.awaitRollout("src", addonsv1.RolloutCompleted, "a rollout is no change")
			m.awaitRollout("dst", addonsv1.RolloutCompleted, "a rollout is no change")
			m.settle()
			m.remember()
			bad := m.stackOf("dst", true, staged(canary))
			bad.Spec.Addons[0].Values = valuesOf(map[string]any{"text": "dst", "bad": true})
			inTime := m.applyOneByOne(bad, m.stackOf("src", false, staged(0)))
			m.awaitRollout("dst", addonsv1.RolloutRolledBack, "its canary failed")
			m.awaitRollout("src", addonsv1.RolloutCompleted, "nothing is wrong with it")
			m.settle()
			if inTime {
				m.expectUnharmed(name)
			}
			m.apply(m.stackOf("dst", true, staged(canary)))
			m.awaitRollout("dst", addonsv1.RolloutCompleted, "it is good now")
			m.awaitHolder("dst", "it moved")
			m.settle()
			m.Expect(m.deletions[0]()).To(BeEmpty())
		})
	}
}

// TestReturnOfACanary deletes the ClusterAddon of a canary in the middle of a rollout. The cluster stays at the revision
// that it has, nothing is written to it, and no other cluster gets it instead.
func TestReturnOfACanary(t *testing.T) {
	t.Parallel()
	m := newMover(t, 2)
	m.create(m.stackOf("src", true))
	m.awaitHolder("src", "it is installed")
	before := m.latestRevision("src")
	m.apply(m.stackOf("src", true, staged(0), func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Values = valuesOf(map[string]any{"text": "two"})
		spec.Rollout.Waves = append(spec.Rollout.Waves, addonsv1.RolloutWave{Name: "late", ClusterSelector: &metav1.LabelSelector{}, Approval: addonsv1.RolloutApprovalRequired})
	}))
	m.awaitRollout("src", addonsv1.RolloutWaitingForApproval, "the canary has it")
	m.settle()
	target := m.assigned("move-0")
	m.Expect(target.Spec.Stacks[0].Revision).NotTo(Equal(before))
	start := m.servers[0].mark(t)
	m.remove(m.clusterAddon("move-0"))
	m.awaitCluster("move-0", "it is made again", ready("moved", "base-src"), func(ca *addonsv1.ClusterAddon) error {
		if ca.UID == target.UID {
			return fmt.Errorf("it is the deleted one")
		}
		return nil
	})
	m.awaitRollout("src", addonsv1.RolloutWaitingForApproval, "it waits as before")
	m.settle()
	m.Expect(m.assigned("move-0").Spec.Stacks).To(Equal(target.Spec.Stacks))
	m.Expect(m.assigned("move-1").Spec.Stacks[0].Revision).To(Equal(before))
	for _, written := range writes(start.requests(t, m.clusterUser("move-0"))) {
		m.Expect(written).NotTo(ContainSubstring("configmaps"))
	}
	m.awaitCluster("move-0", "it has the same release", installedAs("base-src", 2, ""))
}
