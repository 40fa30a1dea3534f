// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/long"
)

// resumeStack ends the pause of an AddonStack.
func (tn *tenant) resumeStack(name string) {
	tn.t.Helper()
	change(tn, tn.newStack(name, nil), func(s *addonsv1.AddonStack) { s.Annotations = nil })
}

// pausedOn expects the stack in the assignment, and whether it is paused there.
func pausedOn(stack string, is bool) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		for _, s := range ca.Spec.Stacks {
			if s.Name == stack && ptr.Deref(s.Paused, false) == is {
				return nil
			}
		}
		return fmt.Errorf("%+v", ca.Spec.Stacks)
	}
}

// TestPausedStackWritesNothing changes all that would have a stack write to its clusters while it is paused. Another stack
// of the same clusters goes on.
func TestPausedStackWritesNothing(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	clusters, servers := map[string]string{"stays": "env=prod", "joins": "env=test", "leaves": "env=prod"}, map[string]*server{}
	for i, name := range []string{"stays", "joins", "leaves"} {
		servers[name] = workloadServer(t, i)
		tn.makeCluster(name, servers[name], labels(clusters[name]))
	}
	tn.startManager()
	tn.create(tn.secret("values", map[string]string{"values.yaml": "text: one"}))
	tn.makeStack("beside", nil, tn.small("beside"))
	tn.install(tn.small("settings", valuesFromSecrets("values")), tn.small("dropped"))
	tn.awaitReady("beside", "it is installed")
	tn.settle()

	tn.pauseStack("platform")
	for _, name := range []string{"stays", "leaves"} {
		tn.awaitCluster(name, "it is told that the stack is paused", pausedOn("platform", true), ready("beside", "dropped", "settings"))
	}
	marks, deletions := map[string]mark{}, map[string]func() []string{}
	drifts := tn.configMapOf("dropped")
	tn.Expect(servers["stays"].Delete(t.Context(), drifts)).To(Succeed())
	for name, s := range servers {
		marks[name], deletions[name] = s.mark(t), tn.watchDeletions(s)
	}
	tn.setSecretText("values", "values.yaml", "two")
	tn.relabel("joins", "env=prod")
	tn.relabel("leaves", "env=test")
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
	tn.changeAddon("beside", "beside", withValues(map[string]any{"text": "goes on"}))
	for name := range clusters {
		tn.reconcileAgain(name, "paused")
		change(tn, tn.clusterAddon(name), func(ca *addonsv1.ClusterAddon) { ca.Annotations = labels(addonsv1.ReconcileNowAnnotation + "=one") })
	}
	waits := phase("settings", addonsv1.AddonPending, reasons.StackPaused, "")
	expectPause := func() {
		t.Helper()
		tn.awaitCluster("stays", "its values changed, and an object is gone", waits, phase("dropped", addonsv1.AddonReady, "", ""), installedAs("beside", 2, ""), func(ca *addonsv1.ClusterAddon) error {
			if d := statusOf(ca, "dropped").Drift; d == nil || d.Objects != 1 {
				return fmt.Errorf("drift %+v", d)
			}
			return nil
		})
		tn.awaitCluster("joins", "it isn't installed", waits, pausedOn("platform", true), installedAs("beside", 2, ""))
		tn.awaitCluster("leaves", "it isn't removed", waits, pausedOn("platform", true), installedAs("beside", 2, ""))
		tn.settle()
		for name := range servers {
			var wrote []string
			for _, write := range writes(marks[name].requests(t, tn.clusterUser(name))) {
				if !strings.Contains(write, "beside") {
					wrote = append(wrote, write)
				}
			}
			tn.Expect(wrote).To(BeEmpty(), "%s: a paused stack writes nothing", name)
		}
	}
	expectPause()
	tn.restart()
	expectPause()
	for name, deleted := range deletions {
		tn.Expect(deleted()).To(BeEmpty(), name)
	}
	s := tn.awaitStack("platform", "the stack says it", addonsv1.PausedCondition, metav1.ConditionTrue, addonsv1.PausedReason, "nothing is written to any cluster")
	tn.Expect(s.Status.Clusters.Failed).To(BeZero(), "a pause fails nothing")

	limit := intstr.FromString("100%")
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.RemovalLimit = &limit })
	tn.resumeStack("platform")
	tn.awaitCluster("stays", "it goes on", pausedOn("platform", false), ready("beside", "settings"), installedAs("settings", 2, ""))
	tn.awaitCluster("joins", "it is installed", ready("beside", "settings"), installedAs("settings", 1, ""))
	for _, addon := range []string{"settings", "dropped"} {
		tn.expectRemoved(t, servers["leaves"], addon)
	}
	tn.awaitReady("platform", "all is as wanted")
}

// TestPausedStackRepairsLater repairs what was changed meanwhile, once the stack is resumed.
func TestPausedStackRepairsLater(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 1)
	tn.install(tn.small("settings"))
	tn.pauseStack("platform")
	tn.awaitCluster("prod", "it is paused", pausedOn("platform", true))
	tn.Expect(s.Delete(t.Context(), tn.configMapOf("settings"))).To(Succeed())
	tn.awaitCluster("prod", "it is told", func(ca *addonsv1.ClusterAddon) error {
		if d := statusOf(ca, "settings").Drift; d == nil || d.Objects != 1 {
			return fmt.Errorf("drift %+v", d)
		}
		return nil
	})
	tn.resumeStack("platform")
	await(t, s, tn.configMapOf("settings"), patience, "it is made again", func(*corev1.ConfigMap) error { return nil })
	tn.awaitReady("platform", "all is as wanted")
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}))
}

// TestPausedStackIsDeleted deletes a paused stack of one cluster: its add-ons stay until somebody confirms that they go.
func TestPausedStackIsDeleted(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, s := newProd(t, 2)
	tn.install(tn.small("settings"))
	tn.settle()
	deletions := tn.watchDeletions(s)
	tn.pauseStack("platform")
	tn.remove(tn.newStack("platform", nil))
	tn.awaitCluster("prod", "it is held", heldOn("platform", addonsv1.RemovalStackDeleted))
	tn.restart()
	tn.settle()
	tn.awaitCluster("prod", "also after a restart", heldOn("platform", addonsv1.RemovalStackDeleted))
	tn.Expect(deletions()).To(BeEmpty())
	tn.confirm("prod", "platform")
	tn.expectRemoved(t, s, "settings")
}
