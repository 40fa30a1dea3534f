// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	illness "github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// degradedSoon is the least that spec.degradedAfterSeconds may be.
const degradedSoon = 10 * time.Second

// TestDegraded has a Deployment that was ready crash, and run again. Nothing is delivered for it, also when the manager
// is restarted. A rolling update that doesn't end, and takes no replica away, is no alarm.
func TestDegraded(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	d := newDrifting(t, 0, nil, func(a *addonsv1.Addon) { a.Values = valuesOf(map[string]any{"replicas": 2}) })
	d.setDegradedAfter("platform", degradedSoon)
	d.awaitReady("platform", "a field of the stack changes nothing")
	revision := statusOf(d.awaitCluster("prod", "it is installed", ready("web")), "web").Revision

	d.patch(d.deployment(), "kubectl-rollout", `{"spec":{"template":{"metadata":{"annotations":{"chandler.test/pod-fate":"stuck"}}}}}`)
	d.stays(2*degradedSoon, "a rolling update is no alarm", ready("web"))
	d.patch(d.deployment(), "kubectl-rollout", `{"spec":{"template":{"metadata":{"annotations":null}}}}`)

	broken := d.breakPod("CrashLoopBackOff")
	degraded := phase("web", addonsv1.AddonDegraded, illness.ReasonCrashLoopBackOff, broken.Name)
	ca := d.awaitCluster("prod", "a pod crashes", degraded)
	d.Expect(statusOf(ca, "web").Revision).To(Equal(revision))
	d.Expect(conditions.GetReason(ca, addonsv1.ReadyCondition)).To(Equal(addonsv1.AddonsDegradedReason))
	d.awaitStack("platform", "the cause is on the stack", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, illness.ReasonCrashLoopBackOff)
	d.awaitEvent(illness.ReasonCrashLoopBackOff, broken.Name)

	d.restart()
	d.stays(degradedSoon, "nothing says that it is otherwise", degraded)
	d.Expect(d.s.Delete(t.Context(), broken)).To(Succeed())
	ca = d.awaitCluster("prod", "another pod runs", ready("web"))
	d.Expect(statusOf(ca, "web").Revision).To(Equal(revision), "nothing was delivered")
	d.awaitReady("platform", "it has ended by itself")
	d.awaitEvent("AddonReady", "Healthy again")
}

// setDegradedAfter sets how long an add-on of a stack may be ill.
func (tn *tenant) setDegradedAfter(stack string, after time.Duration) {
	tn.t.Helper()
	s := &addonsv1.AddonStack{ObjectMeta: tn.named(stack)}
	patch := fmt.Sprintf(`{"spec":{"degradedAfterSeconds":%d}}`, int(after.Seconds()))
	must.Succeed(tn.t, world.hub.Patch(tn.t.Context(), s, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// stays expects a check of the ClusterAddon to hold for a while.
func (d *drifting) stays(length time.Duration, why string, check clusterCheck) {
	d.t.Helper()
	d.Consistently(func() error {
		ca := d.clusterAddon("prod")
		if err := world.hub.Get(d.t.Context(), d.key("prod"), ca); err != nil {
			return err
		}
		return check(ca)
	}, length, 100*time.Millisecond).Should(Succeed(), why)
}

// breakPod has a pod of the Deployment say what the kubelet says of one whose container waits for the reason.
func (d *drifting) breakPod(reason string) *corev1.Pod {
	d.t.Helper()
	var broken *corev1.Pod
	poll(d.t, patience, "two pods are to run", func() error {
		pods := &corev1.PodList{}
		if err := d.s.List(d.t.Context(), pods, client.InNamespace(d.namespace), client.MatchingLabels{"app": "web"}); err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if p := &pods.Items[i]; p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				running++
				broken = p
			}
		}
		if running != 2 || len(pods.Items) != 2 {
			return fmt.Errorf("%d of %d run", running, len(pods.Items))
		}
		return nil
	})
	controlplane.Break(broken, reason)
	if err := d.s.Status().Update(d.t.Context(), broken); err != nil {
		d.t.Fatal(errors.Join(errors.New("breaking a pod"), err))
	}
	return broken
}
