// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
)

// Removals returns how many clusters lose add-ons of a stack that spec.allowedRemovals doesn't name, once all have the revision, and
// how many may without confirmation; nil if none loses any. The spec is that of the revision, with its policies.
func (r *Reconciler) Removals(ctx context.Context, of client.ObjectKey, revision string, spec *addonsv1.AddonStackSpec) (*addonsv1.PlanRemovals, error) {
	candidates, _, err := r.candidates(ctx, of.Namespace)
	c := candidate.Find(candidates, of.Name)
	if err != nil || c == nil || spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan { // by that, nothing is uninstalled
		return nil, err
	}
	*c = c.Proposed(revision, spec)
	return r.Guard.Foresee(ctx, of, candidates)
}
