// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
)

// candidates returns the namespace's stacks, which are only read. A stack that is being deleted is no candidate. If some are new,
// it returns when to look again.
func (r *Reconciler) candidates(ctx context.Context, namespace string) (all []candidate.Stack, again time.Duration, err error) {
	stacks := &addonsv1.AddonStackList{}
	if err := r.Client.List(ctx, stacks, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing AddonStacks of namespace %s: %w", namespace, err)
	}
	revisions := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, revisions, client.InNamespace(namespace), client.HasLabels{addonsv1.StackNameLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing ControllerRevisions of namespace %s: %w", namespace, err)
	}
	read, err := r.snapshots.Read(namespace, stacks.Items, revisions.Items)
	if err != nil {
		return nil, 0, err
	}
	turns := func(name, revision string) sets.Set[string] {
		return r.Turns.To(client.ObjectKey{Namespace: namespace, Name: name}, revision)
	}
	all, again = candidate.AtTime(read, turns, r.Clock.Now())
	return all, again, nil
}
