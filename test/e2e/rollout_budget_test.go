// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestRolloutBudget has clusters that can't be reached before, and one whose add-on failed before. They use up nothing of
// maxFailed. If two of the others fail, and one may, the rollout halts.
func TestRolloutBudget(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const well, poor = 2, 4
	dead := numberOf("CHANDLER_ROLLOUT_DEAD", 5)
	r := newRolling(t, "budget", well+poor)
	for i := range dead {
		r.makeClusterObject(fmt.Sprint("budget-dead-", i), labels("env=prod"))
	}
	for i := range poor {
		more := labels("env=prod", "poor=yes")
		if i == 0 {
			more["broken"] = "yes"
		}
		name := fmt.Sprint("budget-", i)
		change(r.tenant, newCluster(r.namespace, name, nil), func(c *clusterv1.Cluster) { c.Labels = more })
	}
	r.edit("two", "broken")
	r.awaitCluster("budget-0", "it fails before", phase("settings", addonsv1.AddonFailed, "", ""))
	for i := range well + poor - 1 {
		r.awaitCluster(fmt.Sprint("budget-", i+1), "all others are well", ready("settings"))
	}

	r.edit("three", "poor", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(1), MaxFailed: ofNumber(1)}))
	s := r.newStack("platform", nil)
	await(t, world.hub, s, 4*patience, "a second one failed", func(s *addonsv1.AddonStack) error {
		if is := s.Status.Rollout; is == nil || is.Phase != addonsv1.RolloutHalted {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
	wave := s.Status.Rollout.Waves[0]
	g.Expect(wave.Failed).To(BeEquivalentTo(2), "%+v", wave)
	g.Expect(wave.Away).To(BeEquivalentTo(dead))
	g.Expect(wave.Updated).To(BeNumerically("<=", well+poor-1), "the third one of them never starts")
	at := r.at(s.Status.Rollout.Revision)
	r.settle()
	g.Expect(r.at(s.Status.Rollout.Revision)).To(Equal(at), "no other starts")
	g.Expect(s.Status.Conditions).To(ContainElement(And(HaveField("Type", addonsv1.RolledOutCondition), HaveField("Status", metav1.ConditionFalse))))
	t.Logf("%d clusters that were dead before, 1 that failed before, %d that failed: %d have it", dead, wave.Failed, wave.Updated)
}
