// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// WavesOf returns the waves of a stack's rollout with their members, as if it were decided now. The clusters are those of the
// namespace. The revisions come the newest first.
func WavesOf(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, clusters map[string]*member.Member, addons []addonsv1.ClusterAddon, now time.Time) rollout.Decision {
	q := standing.RolloutOf(s, revisions)
	spec := stack.SpecAt(revisions, q.Revision())
	if spec == nil {
		return rollout.Decision{}
	}
	selected := standing.Select(s.Namespace, spec, clusters, addons)
	return rollout.Decide(q.Input(now, s.Labels[clusterv1.WatchLabel], nil, selected))
}
