// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestHoldExpires has an add-on that never becomes ready. The upgrade is held for as long as the stack says, also by an
// instance that is killed meanwhile, and then it continues.
func TestHoldExpires(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t, "expiring", "--instance-heartbeat=4s")
	const name = "c"
	stack := func(text string, hold int32, then addonsv1.AfterHold) *addonsv1.AddonStack {
		s := tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, text))
		s.Spec.Lifecycle = &addonsv1.StackLifecycle{HoldSeconds: &hold, AfterHold: then}
		return s
	}
	createCluster(t, tn.at(name), localClass, v34, 0)
	tn.set(stack("first", 1, addonsv1.AfterHoldHold))
	tn.awaitFirst(name)

	tn.set(stack("second", 1, addonsv1.AfterHoldHold))
	setVersion(t, tn.at(name), v35)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "add-on cni of AddonStack platform isn't ready")
	tn.await(name, "it is held for ever", func(ca *addonsv1.ClusterAddon) error {
		if u := ca.Status.Upgrade; u == nil || len(u.Gates) != 1 || u.Gates[0].State != addonsv1.GateWaiting || !u.Gates[0].Deadline.IsZero() {
			return fmt.Errorf("it is %+v", u)
		}
		return nil
	})
	tn.chandler.Kill()
	tn.chandler.Launch()
	tn.set(stack("second", 20, addonsv1.AfterHoldProceed))
	since := metav1.Time{}
	tn.await(name, "it was held long enough", func(ca *addonsv1.ClusterAddon) error {
		if c := conditions.Get(ca, addonsv1.UpgradeAllowedCondition); c == nil || c.Status != metav1.ConditionTrue || c.Reason != addonsv1.UpgradeHoldExpiredReason {
			return fmt.Errorf("it is %+v", c)
		}
		since = ca.Status.Upgrade.Since
		return nil
	})
	g.Expect(metav1.Now().Sub(since.Time).Seconds()).To(BeNumerically(">=", 20))
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35})
	tn.warned(addonsv1.UpgradeHoldExpiredReason)
}

// warned returns once there is a Warning with a reason.
func (tn *tenant) warned(reason string) {
	tn.Helper()
	until(tn.T, "somebody is warned of "+reason, func() error {
		all := &corev1.EventList{}
		if err := world.List(tn.Context(), all, client.InNamespace(tn.namespace), client.MatchingFields{"reason": reason}); err != nil {
			return err
		}
		if len(all.Items) == 0 || all.Items[0].Type != corev1.EventTypeWarning {
			return fmt.Errorf("the events are %+v", all.Items)
		}
		return nil
	})
}
