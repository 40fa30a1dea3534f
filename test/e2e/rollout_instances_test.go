// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// TestSharedRollout has two instances with a canary and another cluster each. No wave begins at one of them while the other
// is in the wave before, also while that one is down.
func TestSharedRollout(t *testing.T) {
	long.InCI(t)
	t.Parallel()
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

	second.Stop(t)
	r.edit("two", "none", rollsOut(addonsv1.Rollout{Waves: []addonsv1.RolloutWave{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: labels("stage=canary")}},
	}}))
	s := r.awaitPhase(addonsv1.RolloutWaitingForInstances, 0, "an instance that is down holds the other one")
	tn.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring(green))
	ofGreen.startManager("--watch-filter=" + green)
	s = r.awaitPhase(addonsv1.RolloutCompleted, 4, "it is back")
	target := s.Status.Rollout.Revision
	tn.Expect(r.at(target)).To(HaveLen(4))
	tn.Expect(r.attempt(target).Completed).NotTo(BeZero())
	first := map[string]metav1.Time{}
	for _, filter := range []string{blue, green} {
		for _, wave := range []string{"-first", "-second"} {
			ca := tn.awaitCluster(filter+wave, "it has it", ready("settings"))
			first[filter+wave] = ca.Status.Stacks[0].Started
		}
	}
	for _, filter := range []string{blue, green} {
		for _, other := range []string{blue, green} {
			tn.Expect(first[filter+"-second"].Time).NotTo(BeTemporally("<", first[other+"-first"].Time), "no second wave begins before a first one")
		}
	}

	r.edit("three", "none", rollsOut(addonsv1.Rollout{MaxConcurrent: new(intstr.FromInt32(1)), MinReady: &metav1.Duration{Duration: 3 * time.Second}}))
	tn.awaitStatus("platform", "it begins", func(s *addonsv1.AddonStack) error {
		if is := s.Status.Rollout; is == nil || is.Revision == target || is.Phase == addonsv1.RolloutCompleted {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
	r.awaitPhase(addonsv1.RolloutCompleted, 4, "one after the other")
	var each []addonsv1.StackStatus
	for name := range first {
		each = append(each, tn.awaitCluster(name, "it has it", ready("settings")).Status.Stacks[0])
	}
	slices.SortFunc(each, func(a, b addonsv1.StackStatus) int { return a.Started.Compare(b.Started.Time) })
	for i, is := range each[1:] {
		tn.Expect(is.Started.Time).NotTo(BeTemporally("<", each[i].Since.Add(3*time.Second)), "maxConcurrent counts over both instances: %+v", each)
	}
}

// TestTenInstancesShareOneLimit has ten instances with four clusters each roll out an edit of one stack. By each state of their
// ClusterAddons, as a watch tells of them, never are more clusters on their way than maxConcurrent, and the limit is used.
func TestTenInstancesShareOneLimit(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const clusters, most = 4, 5
	instances := environmentNumber(t, "CHANDLER_E2E_INSTANCES", 10)
	tn := newTenant(t)
	suffix := utilrand.String(5)
	authority := virtualcluster.NewAuthority(t)
	for i := range instances {
		filter := fmt.Sprintf("part-%d-%s", i, suffix)
		for n := range clusters {
			name := fmt.Sprintf("%s-%d", filter, n)
			tn.writeKubeconfig(name, authority.New(t, tn.userOn(workloadServer(t, 1), name), name).Kubeconfig)
			tn.makeClusterObject(name, labels(clusterv1.WatchLabel+"="+filter))
		}
		tn.instance(fmt.Sprint("part-", i)).startManager("--watch-filter=" + filter)
	}
	all := int32(instances * clusters)
	r := &rolling{tenant: tn, isShared: true, path: tn.writeChart("settings", "1.0.0", rollingChart)}
	addon := tn.addon("settings", r.path, func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor("one", "none") })
	tn.create(tn.stackWithFilter("platform", addonsv1.SharedWatchFilter, addon))
	tn.awaitStatus("platform", "all instances install it", counts(all, all))

	f := newFlights(r.latestRevision("platform"), int(all))
	stop := r.watchAll(world.hub, &addonsv1.ClusterAddonList{}, f.see)
	r.edit("two", "none", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(most), MinReady: &metav1.Duration{Duration: time.Second}}))
	r.awaitPhase(addonsv1.RolloutCompleted, all, "the edit comes to all")
	stop()
	tn.Expect(f.started).To(HaveLen(int(all)))
	tn.Expect(f.most).To(Equal(most), "so many were on their way at once")
}
