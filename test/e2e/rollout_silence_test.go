// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// falling is a fleet of six clusters, of which the first three can fall silent. They are those of wave "first".
type falling struct {
	*rolling
	names   []string
	proxies map[string]*proxy
	before  string // the revision that all have
}

func newFalling(t *testing.T, name string) *falling {
	t.Helper()
	f := &falling{rolling: newRolling(t, name, 6), proxies: map[string]*proxy{}}
	for i := range 3 {
		cluster := fmt.Sprint(name, "-", i)
		f.names = append(f.names, cluster)
		f.putBehindProxy(cluster)
		change(f.tenant, newCluster(f.namespace, cluster, nil), func(c *clusterv1.Cluster) { c.Labels = labels("env=prod", "stage=first") })
	}
	f.before = f.latestRevision("platform")
	f.settle()
	return f
}

// putBehindProxy has the kubeconfig of a cluster lead to a proxy.
func (f *falling) putBehindProxy(cluster string) {
	f.t.Helper()
	secret := f.secret(cluster+"-kubeconfig", nil)
	must.Succeed(f.t, world.hub.Get(f.t.Context(), f.key(secret.Name), secret))
	user := &controlplane.User{Kubeconfig: secret.Data["value"]}
	var err error
	if user.Config, err = clientcmd.RESTConfigFromKubeConfig(user.Kubeconfig); err != nil {
		f.t.Fatal(err)
	}
	f.proxies[cluster] = f.proxyAs(user)
	f.writeKubeconfig(cluster, f.proxies[cluster].kubeconfig(f.t))
}

// firstWave is a rollout whose first wave is that of the clusters that fall silent.
func firstWave(concurrent int32, more ...func(*addonsv1.Rollout)) func(*addonsv1.AddonStackSpec) {
	rollout := addonsv1.Rollout{MaxConcurrent: ofNumber(concurrent), Waves: []addonsv1.RolloutWave{
		{Name: "first", ClusterSelector: &metav1.LabelSelector{MatchLabels: labels("stage=first")}},
	}}
	for _, m := range more {
		m(&rollout)
	}
	return rollsOut(rollout)
}

// awaitSilence waits until it is known that clusters don't answer.
func (f *falling) awaitSilence() {
	f.t.Helper()
	for _, name := range f.names {
		f.awaitCluster(name, "it doesn't answer", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ConnectionTimedOut", ""))
	}
}

// awaitNamed waits until the rollout's message names clusters.
func (f *falling) awaitNamed(phase addonsv1.RolloutPhase, updated int32, reason string, clusters []string) *addonsv1.AddonStack {
	f.t.Helper()
	var s *addonsv1.AddonStack
	poll(f.t, patience, reason, func() error {
		s = f.awaitPhase(phase, updated, reason)
		message := conditions.GetMessage(s, addonsv1.RolledOutCondition)
		for _, name := range clusters {
			if !strings.Contains(message, name) {
				return fmt.Errorf("%s isn't named: %s", name, message)
			}
		}
		return nil
	})
	return s
}

// pass has time pass on a cluster: its status says of all that happened there that it was earlier by so much.
func (r *rolling) pass(cluster string, d time.Duration) {
	r.t.Helper()
	ca := r.clusterAddon(cluster)
	err := retryOnConflict(func() error {
		if err := world.hub.Get(r.t.Context(), r.key(cluster), ca); err != nil {
			return err
		}
		for i := range ca.Status.Stacks {
			is := &ca.Status.Stacks[i]
			is.Started, is.Since = metav1.NewTime(is.Started.Add(-d)), metav1.NewTime(is.Since.Add(-d))
		}
		for i := range ca.Status.Conditions {
			is := &ca.Status.Conditions[i]
			is.LastTransitionTime = metav1.NewTime(is.LastTransitionTime.Add(-d))
		}
		return world.hub.Status().Update(r.t.Context(), ca)
	})
	must.Succeed(r.t, err)
}

// TestRolloutPassesSilentClusters has the three clusters of the first wave fall silent before their turn. They hold no
// slot, and the wave has shown nothing until one of them is back. Then the rollout ends without the others, which follow.
func TestRolloutPassesSilentClusters(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	f := newFalling(t, "away")
	seen := newFlights(f.before, 6)
	stop := f.watchAll(world.hub, &addonsv1.ClusterAddonList{}, seen.see)
	since := world.hub.mark(t)
	f.edit("two", "none", firstWave(1, func(r *addonsv1.Rollout) { r.Waves[0].Approval = addonsv1.RolloutApprovalRequired }))
	target := f.awaitPhase(addonsv1.RolloutWaitingForApproval, 0, "it has begun").Status.Rollout.Revision
	for _, name := range f.names {
		f.proxies[name].swallow(t)
	}
	f.awaitSilence()
	f.annotateRevision(target, addonsv1.RolloutApprovedAnnotation, "first")
	s := f.awaitNamed(addonsv1.RolloutWaitingForClusters, 0, "no cluster of the wave answers", f.names)
	f.Expect(s.Status.Rollout.Waves[0]).To(HaveField("Away", int32(3)))
	f.Expect(f.at(target)).To(BeEmpty(), "the next wave doesn't begin")

	f.proxies[f.names[0]].open(t)
	s = f.awaitNamed(addonsv1.RolloutCompleted, 4, "one is back, and nothing waits for the others", f.names[1:])
	var done, away int32 // in two waves, or in one, as soon as the revision is marked as completed
	for _, wave := range s.Status.Rollout.Waves {
		done, away = done+wave.Done, away+wave.Away
	}
	f.Expect(done).To(Equal(int32(4)))
	f.Expect(away).To(Equal(int32(2)))
	f.Expect(f.at(f.before)).To(Equal(f.names[1:]))

	for _, name := range f.names[1:] {
		f.proxies[name].open(t)
	}
	f.awaitPhase(addonsv1.RolloutCompleted, 6, "they follow")
	f.awaitTextOn(f.names, "two", "they have it, too")
	f.awaitReady("platform", "all have it")
	stop()
	f.Expect(seen.most).To(Equal(1), "maxConcurrent holds")
	f.Expect(f.assignments(since)).To(HaveLen(6))
	f.Expect(f.assignments(since)).To(HaveEach(1))
}

// TestRolloutCutsClustersOff has three clusters fall silent once they have started: the change may have cut them off. They
// hold their slots for ten minutes, and then have failed. No other cluster starts. They are back, and follow.
func TestRolloutCutsClustersOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		onFailure  addonsv1.RolloutFailurePolicy
		after, end addonsv1.RolloutPhase
		away       int32
		text       string
	}{
		"halt": {addonsv1.RolloutHalt, addonsv1.RolloutHalted, addonsv1.RolloutCompleted, 0, "two"},
		"back": {addonsv1.RolloutRollBack, addonsv1.RolloutRolledBack, addonsv1.RolloutRolledBack, 3, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFalling(t, "cut-"+name)
			others := f.at(f.before)[3:]
			for _, cluster := range f.names {
				p := f.proxies[cluster]
				p.atWrite(1, false, func() { p.swallow(t) })
			}
			since := world.hub.mark(t)
			f.edit("two", "none", firstWave(6, func(r *addonsv1.Rollout) { r.OnFailure = tc.onFailure }))
			f.awaitSilence()
			s := f.awaitPhase(addonsv1.RolloutProgressing, 3, "ten minutes aren't over")
			target := s.Status.Rollout.Revision
			f.Expect(f.at(target)).To(Equal(f.names))

			for _, cluster := range f.names {
				f.pass(cluster, 11*time.Minute)
			}
			s = f.awaitNamed(tc.after, 3, "they have failed", f.names)
			f.Expect(s.Status.Rollout.Waves[0].Away).To(Equal(tc.away), "%+v", s.Status.Rollout.Waves)
			f.Expect(conditions.GetReason(s, addonsv1.ReadyCondition)).To(Equal(string(tc.after)))
			f.Expect(f.at(target)).To(Or(Equal(f.names), BeEmpty()), "no other starts")

			for _, cluster := range f.names {
				f.proxies[cluster].open(t)
			}
			if tc.end == addonsv1.RolloutCompleted {
				for _, cluster := range f.names {
					f.awaitCluster(cluster, "it is back", ready("settings"))
				}
				f.stays(addonsv1.RolloutHalted, 3, "a halt holds until a person ends it")
				f.annotateRevision(target, addonsv1.RolloutHaltedAnnotation, "")
			}
			f.awaitPhase(tc.end, 6, "they are back")
			f.awaitTextOn(append(others, f.names...), tc.text, "all have the same")
			for _, cluster := range others {
				f.Expect(f.assignments(since)[cluster]).To(Equal(map[string]int{"one": 0, "two": 1}[tc.text]), cluster)
			}
		})
	}
}
