// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// WaveMember is a cluster in a wave of a rollout: where it stands, since when, and why nothing can be done there.
type WaveMember struct {
	Wave     string
	Cluster  string
	Standing string
	Reason   string
	Since    *metav1.Time
}

// MembersOf returns the members of each wave of a stack's rollout, as if it were decided now. The Clusters are those of the
// namespace. The revisions come the newest first.
func MembersOf(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, clusters []clusterv1.Cluster, addons []addonsv1.ClusterAddon, now time.Time) ([]WaveMember, error) {
	q := standing.RolloutOf(s, revisions)
	spec := stack.SpecAt(revisions, q.Revision())
	if spec == nil {
		return nil, nil
	}
	var selected []standing.Cluster
	for i := range clusters {
		cluster := member.OfCluster(&clusters[i])
		if selects, err := stack.Selects(s.Namespace, spec, cluster); err != nil {
			return nil, err
		} else if !selects {
			continue
		}
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}}
		if at := slices.IndexFunc(addons, func(ca addonsv1.ClusterAddon) bool { return ca.Name == cluster.Name }); at >= 0 {
			ca = &addons[at]
		}
		selected = append(selected, standing.Cluster{ClusterAddon: ca, Labels: cluster.Labels, Joined: clusters[i].CreationTimestamp.Time})
	}
	d, all := rollout.Decide(q.Input(now, s.Labels[clusterv1.WatchLabel], nil, selected)), []WaveMember{}
	for i, members := range d.Members {
		for _, m := range members {
			since := metav1.NewTime(m.Since)
			switch m.Standing {
			case rollout.InFlight:
				since.Time = m.Started
			case rollout.Away:
				since.Time = m.AwaySince
			case rollout.Waits:
				since.Time = time.Time{}
			}
			all = append(all, WaveMember{d.Waves[i].Name, m.Name, m.Standing.String(), m.Away, &since})
		}
	}
	return all, nil
}
