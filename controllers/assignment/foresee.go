// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Removals returns how many clusters lose add-ons of a stack that spec.allowedRemovals doesn't name, once all have the revision, and
// how many may without confirmation; nil if none loses any. The spec is that of the revision, with its policies.
func (r *Reconciler) Removals(ctx context.Context, of client.ObjectKey, revision string, spec *addonsv1.AddonStackSpec) (*addonsv1.PlanRemovals, error) {
	if spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan { // nothing is uninstalled
		return nil, nil
	}
	candidates, err := r.candidates(ctx, of.Namespace)
	if err != nil {
		return nil, err
	}
	c := find(candidates, of.Name)
	if c == nil {
		return nil, nil
	}
	*c = candidate{name: c.name, spec: *spec, revision: revision, revisions: c.revisions, generation: c.generation}
	clusters, err := r.Members.List(ctx, of.Namespace)
	if err != nil {
		return nil, err
	}
	cas := &addonsv1.ClusterAddonList{}
	if err := r.Client.List(ctx, cas, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", of.Namespace, err)
	}
	_, all, others := r.losers(clusters, "", of.Name, cas.Items)
	p, losing := &plan{candidates: candidates}, 0
	for _, ca := range others {
		if p.loses(clusters[ca.Name], ca, of.Name) {
			losing++
		}
	}
	if losing == 0 {
		return nil, nil
	}
	return &addonsv1.PlanRemovals{Clusters: int32(losing), Of: int32(all), Allowed: int32(allowance(spec.RemovalLimit, all))}, nil
}
