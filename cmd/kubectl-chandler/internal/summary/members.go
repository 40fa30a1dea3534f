// SPDX-License-Identifier: Apache-2.0

package summary

import (
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

// MembersOf returns the members of each wave of a stack's rollout, as if it were decided now. The clusters are those of the
// namespace. The revisions come the newest first.
func MembersOf(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, clusters map[string]*member.Member, addons []addonsv1.ClusterAddon, now time.Time) (all []WaveMember) {
	q := standing.RolloutOf(s, revisions)
	spec := stack.SpecAt(revisions, q.Revision())
	if spec == nil {
		return nil
	}
	selected := standing.Select(s.Namespace, spec, clusters, addons)
	d := rollout.Decide(q.Input(now, s.Labels[clusterv1.WatchLabel], nil, selected))
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
	return all
}
