// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// historyLimit is how many revisions are kept that no cluster runs, besides the
// newest.
const historyLimit = 10

// pageSize of a list that is read from the API server.
const pageSize = 500

// trimHistory deletes the oldest revisions that no cluster runs. What clusters of other
// filters run isn't in the cache.
func (r *Reconciler) trimHistory(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) error {
	if len(revisions) <= historyLimit+1 {
		return nil
	}
	reader, limit := client.Reader(r.Client), int64(0)
	if r.shares(s) {
		reader, limit = r.APIReader, pageSize
	}
	inUse, err := r.inUse(ctx, reader, s, limit)
	if err != nil {
		return err
	}
	for _, revision := range surplusOf(revisions, inUse) {
		// Another instance may go back to it at this moment.
		asSeen := client.Preconditions{UID: &revision.UID, ResourceVersion: &revision.ResourceVersion}
		if err := r.Client.Delete(ctx, &revision, asSeen); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting revision %s: %w", revision.Name, err)
		}
	}
	return nil
}

// surplusOf returns what is beyond the limit. Revisions come the newest first.
func surplusOf(revisions []appsv1.ControllerRevision, inUse sets.Set[string]) []appsv1.ControllerRevision {
	var surplus []appsv1.ControllerRevision
	kept := 0
	for i := range revisions {
		if i == 0 || inUse.Has(revisions[i].Name) {
			continue
		}
		if kept++; kept > historyLimit {
			surplus = append(surplus, revisions[i])
		}
	}
	return surplus
}

// inUse returns the revisions of the stack that ClusterAddons of the namespace name.
// A limit, for pages, is for the API server: the cache has no pages.
func (r *Reconciler) inUse(ctx context.Context, from client.Reader, s *addonsv1.AddonStack, limit int64) (sets.Set[string], error) {
	inUse := sets.New[string]()
	options := &client.ListOptions{Namespace: s.Namespace, Limit: limit}
	for {
		page := &addonsv1.ClusterAddonList{}
		if err := from.List(ctx, page, options); err != nil {
			return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", s.Namespace, err)
		}
		for i := range page.Items {
			inUse.Insert(stack.AssignedRevision(page.Items[i].Spec.Stacks, s.Name))
		}
		if options.Continue = page.Continue; limit == 0 || page.Continue == "" {
			return inUse, nil
		}
	}
}
