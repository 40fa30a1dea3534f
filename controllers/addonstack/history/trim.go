// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sharing"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Limit is how many revisions are kept that no cluster runs, besides the newest.
const Limit = 10

// Trim deletes the oldest revisions that no cluster runs. The cache doesn't have the
// revisions that clusters of other filters run.
func (h History) Trim(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) error {
	if len(revisions) <= Limit+1 {
		return nil
	}
	reader := client.Reader(h.Client)
	if sharing.IsShared(s, h.WatchFilter) {
		reader = h.APIReader
	}
	all := &addonsv1.ClusterAddonList{}
	if err := reader.List(ctx, all, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("listing ClusterAddons of namespace %s: %w", s.Namespace, err)
	}
	inUse := sets.New[string]()
	for i := range all.Items {
		inUse.Insert(stack.AssignedRevision(all.Items[i].Spec.Stacks, s.Name))
		inUse.Insert(stack.StatusOf(&all.Items[i].Status, s.Name).Previous)
	}
	marked := rollout.Revisions(revisions)
	target := rollout.Target(marked)
	for _, at := range []int{target, rollout.Previous(marked, target), rollout.Entry(marked, target)} {
		if at >= 0 {
			inUse.Insert(revisions[at].Name) // clusters go there, or back
		}
	}
	surplus := slices.DeleteFunc(slices.Clone(revisions[1:]), func(r appsv1.ControllerRevision) bool { return inUse.Has(r.Name) })
	for _, revision := range surplus[min(Limit, len(surplus)):] {
		// Another instance may go back to it at this moment.
		asSeen := client.Preconditions{UID: &revision.UID, ResourceVersion: &revision.ResourceVersion}
		if err := h.Client.Delete(ctx, &revision, asSeen); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting revision %s: %w", revision.Name, err)
		}
	}
	return nil
}
