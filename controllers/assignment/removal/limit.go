// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// exceeds reports whether more clusters lose add-ons of a stack, now or lately, than the limit allows of all that have some.
// It looks at no more of them than that takes: in a large fleet each cluster asks about all others.
func (g *Guard) exceeds(ctx context.Context, p *Plan, name string, limit *intstr.IntOrString, cas []addonsv1.ClusterAddon) (bool, error) {
	clusters, err := g.members.List(ctx, p.ClusterAddon.Namespace)
	if err != nil {
		return false, err
	}
	losing, all, others := g.losers(clusters, p.ClusterAddon.Name, name, cas)
	allowed := Allowance(limit, all)
	if losing+len(others) <= allowed {
		return false, nil
	}
	for i := 0; i < len(others) && losing <= allowed; i++ {
		if p.loses(clusters[others[i].Name], others[i], name) {
			losing++
		}
	}
	return losing > allowed, nil
}

// losers returns how many clusters lose add-ons of a stack, with those that did lately and one that is known to; how many have
// some; and those that have some and may lose them.
func (g *Guard) losers(clusters map[string]*member.Member, known, name string, cas []addonsv1.ClusterAddon) (losing, all int, others []*addonsv1.ClusterAddon) {
	for i := range cas {
		ca := &cas[i]
		cluster := clusters[ca.Name]
		switch {
		case ca.Name == known: // whatever others would lose by the same change
			losing++
		case g.removals.includes(client.ObjectKey{Namespace: ca.Namespace, Name: name}, ca.Name), Last(ca)[name].After(g.clock.Now().Add(-Window)):
			losing++
		case cluster == nil || cluster.Deleting || !has(ca, name):
			continue
		case !candidate.IsPaused(cluster, ca):
			others = append(others, ca)
		}
		all++
	}
	return losing, all, others
}

// loses reports whether a cluster is to lose add-ons of a stack that spec.allowedRemovals doesn't allow.
func (p *Plan) loses(cluster *member.Member, ca *addonsv1.ClusterAddon, name string) bool {
	other := &Plan{Cluster: cluster, ClusterAddon: ca, Candidates: p.Candidates, Wanted: candidate.Assign(cluster, p.Candidates, ca)}
	return len(other.Unallowed(candidate.Find(p.Candidates, name), other.Losses()[name])) > 0
}

// isBehind reports whether the cluster may run more of what is assigned to it than its status says.
func isBehind(ca *addonsv1.ClusterAddon) bool { return ca.Status.ObservedGeneration < ca.Generation }

// has reports whether the cluster has add-ons of the stack.
func has(ca *addonsv1.ClusterAddon, name string) bool {
	return stack.IsAssigned(ca.Spec.Stacks, name) && (isBehind(ca) || slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool {
		return a.Stack == name && candidate.IsInstalled(&a)
	}))
}

// Allowance returns how many of the clusters that have add-ons of a stack may lose some at once: at least one.
func Allowance(limit *intstr.IntOrString, all int) int {
	return max(rollout.AtMost(*cmp.Or(limit, &addonsv1.DefaultRemovalLimit), all), 1)
}
