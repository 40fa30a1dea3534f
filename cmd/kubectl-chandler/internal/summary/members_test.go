// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestMembersOfWaves has a rollout of platform-1 before its first cluster starts, and amid it. Cluster "other" isn't selected, and
// "new" and "paused" have no ClusterAddon yet.
func TestMembersOfWaves(t *testing.T) {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	s.Spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.RolloutWave{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}},
	}}
	clusters := map[string]*member.Member{}
	for name, labels := range map[string]map[string]string{
		"a": {"env": "prod", "canary": "yes"}, "b": {"env": "prod", "canary": "yes"}, "c": {"env": "prod"}, "d": {"env": "prod"}, "new": {"env": "prod"}, "other": {}, "paused": {"env": "prod"},
	} {
		clusters[name] = member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels, CreationTimestamp: noon}})
		clusters[name].Paused = name == "paused"
	}
	at := func(name, revision string, state addonsv1.StackState) addonsv1.ClusterAddon {
		ca := cluster(name, addon("cni", addonsv1.AddonReady, "", ""))
		ca.Spec.Stacks[0].Revision = revision
		ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: revision, State: state, Since: noon, Started: noon}}
		return ca
	}
	kept := func(name string, attempt rollout.Attempt) appsv1.ControllerRevision {
		is := revision(t, name, addonsv1.Addon{Name: "cni"})
		spec := *s.Spec.DeepCopy()
		spec.Rollout, spec.Addons = nil, []addonsv1.Addon{{Name: "cni"}}
		data, err := json.Marshal(spec)
		must.Succeed(t, err)
		is.Data.Raw = data
		is.Revision = attempt.Number
		attempt.Note(&is)
		return is
	}
	before := kept("platform-0", rollout.Attempt{Number: 1, Cause: rollout.Edited, Started: noon.Time, Completed: noon.Time})
	for name, c := range map[string]struct {
		attempt  rollout.Attempt
		clusters []addonsv1.ClusterAddon
		want     []string
	}{
		"before it begins": {
			rollout.Attempt{Number: 2, Cause: rollout.Edited},
			[]addonsv1.ClusterAddon{at("a", "platform-0", addonsv1.StackReady), at("b", "platform-0", addonsv1.StackReady), at("c", "platform-0", addonsv1.StackReady)},
			[]string{"canary a waits", "canary b waits", "rest c waits", "rest d waits", "rest new waits", "rest paused away Paused"},
		},
		"amid it": {
			rollout.Attempt{Number: 2, Cause: rollout.Edited, Started: noon.Time, Waves: s.Spec.Rollout.Waves},
			[]addonsv1.ClusterAddon{
				at("a", "platform-1", addonsv1.StackReady), at("b", "platform-1", addonsv1.StackProgressing),
				at("c", "platform-0", addonsv1.StackReady), heldOut("d", "platform"),
			},
			[]string{"canary a done noon", "canary b on its way noon", "rest c waits", "rest d away Held", "rest new waits", "rest paused away Paused"},
		},
	} {
		for i := range c.clusters {
			if c.clusters[i].Name == "d" {
				c.clusters[i].Spec.Stacks[0].Revision = "platform-0"
			}
		}
		d := summary.WavesOf(s, []appsv1.ControllerRevision{kept("platform-1", c.attempt), before}, clusters, c.clusters, noon.Add(30*time.Minute))
		var got []string
		for i, members := range d.Members {
			for _, m := range members {
				line := d.Waves[i].Name + " " + m.Name + " " + m.Standing.String()
				if m.Away != "" {
					line += " " + m.Away
				}
				if m.StandsSince().Equal(noon.Time) {
					line += " noon"
				}
				got = append(got, line)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
