// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
)

// Foresee returns how many clusters are to lose add-ons of a stack that spec.allowedRemovals doesn't name, and how
// many may without confirmation; nil if none loses any.
func (g *Guard) Foresee(ctx context.Context, of client.ObjectKey, candidates []candidate.Stack) (*addonsv1.PlanRemovals, error) {
	clusters, err := g.members.List(ctx, of.Namespace)
	if err != nil {
		return nil, err
	}
	cas := &addonsv1.ClusterAddonList{}
	if err := g.client.List(ctx, cas, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", of.Namespace, err)
	}
	_, all, others := g.losers(clusters, "", of.Name, cas.Items)
	p, losing := &Plan{Candidates: candidates}, 0
	for _, ca := range others {
		if p.loses(clusters[ca.Name], ca, of.Name) {
			losing++
		}
	}
	if losing == 0 {
		return nil, nil
	}
	limit := candidate.Find(candidates, of.Name).Spec.RemovalLimit
	return &addonsv1.PlanRemovals{Clusters: int32(losing), Of: int32(all), Allowed: int32(Allowance(limit, all))}, nil
}
