// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestHandOver relabels objects from one instance's watch filter to another's.
// Nobody relabels what the instances made for them.
func TestHandOver(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t)
	s := workloadServer(t, 1)
	path := tn.writeChart("settings", "1.0.0", configMapChart)
	suffix := utilrand.String(5)
	blue, green := "blue-"+suffix, "green-"+suffix
	stackOf := func(filter string) string { return "platform-" + filter }
	for _, filter := range []string{blue, green} {
		stack := tn.newStack(stackOf(filter), nil, tn.addon("settings", path))
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
	g.Expect(s.release(t, tn.namespace, "settings")).To(Equal(installed), "the release is the same, at the same revision")
	g.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(BeEmpty(), "a hand-over is no business of the workload cluster")

	t.Run("a stack that is relabelled takes nothing along", func(t *testing.T) {
		tn := tn.in(t)
		g := NewWithT(t)
		mark := s.mark(t)
		change(tn, tn.newStack(stackOf(green), nil), func(s *addonsv1.AddonStack) { s.Labels = labels(clusterv1.WatchLabel + "=" + blue) })
		tn.awaitReady(stackOf(green), "the other instance looks after the stack now, which selects no Cluster there")
		tn.settle()
		g.Expect(s.release(t, tn.namespace, "settings")).To(Equal(installed), "it wasn't deleted, so nothing is uninstalled")
		g.Expect(writes(mark.requests(t, tn.clusterUser("moving")))).To(BeEmpty())
	})
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
