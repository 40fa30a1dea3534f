// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// TestSharedRollout has two instances with a canary and another cluster each. No wave begins at one of them while the other
// is in the wave before, also while that one is down.
func TestSharedRollout(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t)
	suffix := utilrand.String(5)
	blue, green := "blue-"+suffix, "green-"+suffix
	authority := virtualcluster.NewAuthority(t)
	for _, filter := range []string{blue, green} {
		for wave, stage := range map[string]string{"-first": "canary", "-second": "prod"} {
			name := filter + wave
			tn.writeKubeconfig(name, authority.New(t, tn.userOn(workloadServer(t, 1), name), name).Kubeconfig)
			tn.makeClusterObject(name, labels(clusterv1.WatchLabel+"="+filter, "stage="+stage))
		}
	}
	ofBlue, ofGreen := tn.instance("blue"), tn.instance("green")
	ofBlue.startManager("--watch-filter=" + blue)
	second := ofGreen.startManager("--watch-filter=" + green)
	r := &rolling{tenant: tn, isShared: true, path: tn.writeChart("settings", "1.0.0", rollingChart)}
	addon := tn.addon("settings", r.path, func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor("one", "none") })
	tn.create(tn.stackWithFilter("platform", addonsv1.SharedWatchFilter, addon))
	tn.awaitStatus("platform", "both instances install it", counts(4, 4))

	second.stop(t)
	r.edit("two", "none", rollsOut(addonsv1.Rollout{Waves: []addonsv1.RolloutWave{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: labels("stage=canary")}},
	}}))
	s := r.awaitPhase(addonsv1.RolloutWaitingForInstances, 0, "an instance that is down holds the other one")
	g.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring(green))
	g.Expect(s.Status.Rollout.Completed).NotTo(BeEmpty())

	ofGreen.startManager("--watch-filter=" + green)
	s = r.awaitPhase(addonsv1.RolloutCompleted, 4, "it is back")
	target := s.Status.Rollout.Revision
	g.Expect(r.at(target)).To(HaveLen(4))
	g.Expect(r.marks(target)).To(HaveKey(addonsv1.RolloutCompletedAnnotation))
	first := map[string]metav1.Time{}
	for _, filter := range []string{blue, green} {
		for _, wave := range []string{"-first", "-second"} {
			ca := tn.awaitCluster(filter+wave, "it has it", ready("settings"))
			first[filter+wave] = ca.Status.Stacks[0].Started
		}
	}
	for _, filter := range []string{blue, green} {
		for _, other := range []string{blue, green} {
			g.Expect(first[filter+"-second"].Time).NotTo(BeTemporally("<", first[other+"-first"].Time), "no second wave begins before a first one")
		}
	}
}
