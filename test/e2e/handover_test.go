// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestHandOver relabels objects from one instance's watch filter to another's.
// Nobody relabels what the instances made for them.
func TestHandOver(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	suffix := utilrand.String(5)
	blue, green := "blue-"+suffix, "green-"+suffix
	stackOf := func(filter string) string { return "platform-" + filter }
	for _, filter := range []string{blue, green} {
		stack := tn.newStack(stackOf(filter), nil, tn.small("settings"))
		stack.Labels = labels(clusterv1.WatchLabel + "=" + filter)
		tn.create(stack)
	}
	tn.makeCluster("moving", s, labels(clusterv1.WatchLabel+"="+blue))
	tn.startManager("--watch-filter=" + green)
	tn.startManager("--watch-filter=" + blue)
	tn.awaitCluster("moving", "the first instance installs the add-on", ready("settings"), assignedTo(stackOf(blue), blue))
	tn.settle()
	installed := s.release(t, tn.namespace, "settings")
	mark := s.mark(t)

	tn.relabel("moving", clusterv1.WatchLabel+"="+green)

	tn.awaitCluster("moving", "the second instance takes the ClusterAddon over", ready("settings"), assignedTo(stackOf(green), green))
	tn.settle()
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(installed), "the release is the same, at the same revision")
	tn.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(ConsistOf(ContainSubstring("/secrets/sh.helm.release.v1.settings.v1?")),
		"its record names the other stack now: there it is read which stack's add-on it is, and nothing else is written")

	tn.run("a stack that is relabelled takes nothing along", func(t *testing.T, tn *tenant) {
		mark := s.mark(t)
		change(tn, tn.newStack(stackOf(green), nil), func(s *addonsv1.AddonStack) { s.Labels = labels(clusterv1.WatchLabel + "=" + blue) })
		tn.awaitReady(stackOf(green), "the other instance manages the stack now, which selects no Cluster there")
		tn.settle()
		tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(installed), "it wasn't deleted, so nothing is uninstalled")
		tn.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(BeEmpty())
	})
}

// TestHandOverBoth relabels a Cluster and its AddonStack, in either order.
func TestHandOverBoth(t *testing.T) {
	t.Parallel()
	relabelStack := func(tn *tenant, filter string) {
		change(tn, tn.newStack("platform", nil), func(s *addonsv1.AddonStack) { s.Labels[clusterv1.WatchLabel] = filter })
	}
	relabelCluster := func(tn *tenant, filter string) { tn.refilter("moving", filter) }
	for name, order := range map[string][2]func(*tenant, string){
		"Cluster first": {relabelCluster, relabelStack},
		"stack first":   {relabelStack, relabelCluster},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			s := workloadServer(t, 1)
			suffix := utilrand.String(5)
			blue, green := "blue-"+suffix, "green-"+suffix
			tn.makeCluster("moving", s, labels(clusterv1.WatchLabel+"="+blue))
			tn.create(tn.stackWithFilter("platform", blue, tn.addon("settings", tn.writeChart("settings", "1.0.0", configMapChart))))
			managers := []*manager{tn.startManager("--watch-filter=" + blue), tn.startManager("--watch-filter=" + green)}
			tn.changeAddon("platform", "settings", withValues(map[string]any{"text": "two"}))
			tn.awaitCluster("moving", "the first instance installs the add-on", ready("settings"), assignedTo("platform", blue))
			tn.awaitReady("platform", "all is ready")
			settleAll(t, managers...)
			mark, installed, revisions := s.mark(t), s.release(t, tn.namespace, "settings"), namesOf(tn.revisionsOf("platform"))
			generation := tn.awaitCluster("moving", "it is there").Generation

			order[0](tn, green)
			settleAll(t, managers...)
			tn.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(BeEmpty(), "half-way nothing is uninstalled")
			order[1](tn, green)

			ca := tn.awaitCluster("moving", "the second instance takes both over", ready("settings"), assignedTo("platform", green))
			tn.awaitReady("platform", "all is ready")
			settleAll(t, managers...)
			tn.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(BeEmpty(), "a hand-over is no business of the workload cluster")
			tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(installed), "the release is the same, at the same revision")
			tn.Expect(ca.Generation).To(Equal(generation), "what the cluster is to run is the same")
			tn.Expect(namesOf(tn.revisionsOf("platform"))).To(ConsistOf(revisions), "the revisions are the same")
			tn.Expect(tn.revisionsOf("platform")).To(HaveEach(HaveField("Labels", HaveKeyWithValue(clusterv1.WatchLabel, green))), "and all of them go with their stack")
		})
	}
}

// TestHandOverNamespace moves a namespace from one instance's --namespace to
// another's, as their flags do after a rollout.
func TestHandOverNamespace(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	others := map[string]*tenant{}
	for _, name := range []string{"first", "second"} { // the namespaces that stay
		other := *tn
		other.namespace += "-" + name
		world.hub.createNamespace(t, other.namespace)
		tn.allowIn(other.namespace)
		others[name] = &other
	}
	first, second := tn.instance("first"), tn.instance("second")
	stays, goes := others["first"].namespace, tn.namespace
	tn.makeCluster("moving", s, nil)
	tn.makeStack("platform", nil, tn.addon("settings", tn.writeChart("settings", "1.0.0", configMapChart)))
	one := first.launch("--namespace=" + stays + "," + goes)
	two := second.launch("--namespace=" + others["second"].namespace)
	tn.awaitReady("platform", "the first instance installs the add-on")
	settleAll(t, one)
	mark, installed := s.mark(t), s.release(t, tn.namespace, "settings")
	before := tn.versions()

	one.Stop(t)
	two.Stop(t)
	from := world.hub.mark(t)
	one = first.launch("--namespace=" + stays)
	two = second.launch("--namespace=" + others["second"].namespace + "," + goes)
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.ProgressDeadlineSeconds = ptr.To[int32](700) })
	tn.awaitReady("platform", "the second instance manages the namespace")
	settleAll(t, two)
	tn.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(BeEmpty(), "a hand-over is no business of the workload cluster")
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(installed), "the release is the same, at the same revision")
	after := tn.versions()
	for name := range before {
		tn.Expect(after).To(HaveKey(name), "nothing is deleted")
	}
	tn.Expect(described(from.requests(t, first.user), func(e auditEvent) bool {
		return !registers(e) && e.ObjectRef != nil && e.ObjectRef.Namespace == goes
	})).To(BeEmpty(), "the first instance has no business there any more")
	one.Stop(t)
}

// assignedTo expects the stack among those that the cluster is to run, and the
// watch label.
func assignedTo(stack, filter string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if got := ca.Labels[clusterv1.WatchLabel]; got != filter {
			return fmt.Errorf("the watch label is %q, expected %q", got, filter)
		}
		for _, s := range ca.Spec.Stacks {
			if s.Name == stack && s.Revision != "" {
				return nil
			}
		}
		return fmt.Errorf("the stacks are %v, expected %s", ca.Spec.Stacks, stack)
	}
}

// TestLeader has two replicas of one instance, of which the leader is killed.
func TestLeader(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	replica := []string{
		"--leader-elect", "--leader-elect-namespace=" + tn.namespace,
		"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=500ms",
	}
	leader := tn.startManager(replica...)
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.install(tn.small("settings"))
	tn.settle()
	standby := tn.startManager(replica...)
	var done float64
	poll(t, patience, "the second replica is to wait for the lease", func() (err error) {
		if !bytes.Contains(standby.Tail(), []byte("Attempting to acquire leader lease")) {
			return errors.New("it doesn't say so")
		}
		done, err = reconciled(standby, "clusteraddon")
		return err
	})
	tn.Expect(done).To(BeZero(), "only one replica works")
	mark := s.mark(t)

	leader.Kill()
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) {
		a.Values = &apiextensionsv1.JSON{Raw: []byte(`{"text": "of the second"}`)}
	})
	tn.awaitReady("platform", "the second replica takes over once the lease has run out")
	tn.Expect(s.textIn(t, tn.namespace, "settings")).To(Equal("of the second"))
	tn.Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(2), "it knows what is installed, and makes one revision")
	tn.Expect(writes(mark.requests(t, tn.clusterUser("prod")))).NotTo(BeEmpty())
}
