// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// candidate is an AddonStack with the revision that clusters are to run, "" if
// it has none yet.
type candidate struct {
	stack    addonsv1.AddonStack
	revision string
}

// candidates reads the namespace's stacks and their newest revisions.
func (r *Reconciler) candidates(ctx context.Context, namespace string) ([]candidate, error) {
	stacks := &addonsv1.AddonStackList{}
	if err := r.Client.List(ctx, stacks, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing AddonStacks of namespace %s: %w", namespace, err)
	}
	revisions := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, revisions, client.InNamespace(namespace), client.HasLabels{addonsv1.StackNameLabel}); err != nil {
		return nil, fmt.Errorf("listing ControllerRevisions of namespace %s: %w", namespace, err)
	}
	candidates := make([]candidate, 0, len(stacks.Items))
	for i := range stacks.Items {
		c := candidate{stack: stacks.Items[i]}
		if own := stack.OwnRevisions(&c.stack, revisions.Items); len(own) > 0 {
			c.revision = own[0].Name
		}
		candidates = append(candidates, c)
	}
	return candidates, nil
}

// assign decides which revisions the cluster is to run. While nothing certain
// can be said of a stack (its selector can't be read, or it has no revision), the
// cluster keeps the revision it has, or none: what is installed of the stack
// stays as it is.
func assign(cluster *clusterv1.Cluster, candidates []candidate, assigned []addonsv1.StackRevision) []addonsv1.StackRevision {
	var wanted []addonsv1.StackRevision
	for _, c := range candidates {
		if !c.stack.DeletionTimestamp.IsZero() {
			continue
		}
		selects, err := stack.Selects(&c.stack, cluster)
		if err == nil && !selects {
			continue
		}
		revision := c.revision
		if err != nil || revision == "" {
			revision = revisionOf(assigned, c.stack.Name)
		}
		wanted = append(wanted, addonsv1.StackRevision{Name: c.stack.Name, Revision: revision})
	}
	slices.SortFunc(wanted, func(a, b addonsv1.StackRevision) int { return cmp.Compare(a.Name, b.Name) })
	return wanted
}

func revisionOf(assigned []addonsv1.StackRevision, name string) string {
	for _, a := range assigned {
		if a.Name == name {
			return a.Revision
		}
	}
	return ""
}
