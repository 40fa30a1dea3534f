// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"path"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// waiting returns a context for calls that may have to wait for sources: together they wait
// a moment, and the stack is enqueued when what they wait for has come.
func (r *Reconciler) waiting(ctx context.Context, key client.ObjectKey) context.Context {
	return r.Sources.Waiting(ctx, "AddonStack "+key.String(), func() { r.wake.Add(key) })
}

// PathChanged enqueues the stacks whose bundle is at a path of the artifact root.
func (r *Reconciler) PathChanged(ctx context.Context, changed string) {
	for _, key := range r.stacksWith(ctx, "", func(spec *addonsv1.AddonStackSpec) bool {
		return spec.Source != nil && spec.Source.Path != "" && path.Clean(spec.Source.Path) == changed
	}) {
		r.wake.Add(key)
	}
}

// stacksUsing enqueues the stacks that read a ConfigMap or Secret: their bundle is in
// it, credentials for it or for what they follow, or keys to verify that with.
func (r *Reconciler) stacksUsing(kind string) func(context.Context, client.Object) []client.ObjectKey {
	return func(ctx context.Context, obj client.Object) []client.ObjectKey {
		return r.stacksWith(ctx, obj.GetNamespace(), func(spec *addonsv1.AddonStackSpec) bool {
			return slices.ContainsFunc(polledSources(obj.GetNamespace(), spec), func(ref reference.Reference) bool {
				return ref.Uses(kind, obj.GetName())
			})
		})
	}
}

// polledSources returns what a stack asks sources about by itself.
func polledSources(namespace string, spec *addonsv1.AddonStackSpec) []reference.Reference {
	var all []reference.Reference
	if spec.Source != nil {
		all = append(all, reference.BundleOf(namespace, spec.Source))
	}
	for _, follower := range stack.Followers(spec) {
		all = append(all, referenceOf(namespace, follower))
	}
	return all
}

// stacksWith returns the stacks of a namespace whose spec is such a one, "" being all
// namespaces.
func (r *Reconciler) stacksWith(ctx context.Context, namespace string, such func(*addonsv1.AddonStackSpec) bool) []client.ObjectKey {
	all := &addonsv1.AddonStackList{}
	if err := r.Client.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil // the cache is synced before events are handed on
	}
	var keys []client.ObjectKey
	for i := range all.Items {
		if such(&all.Items[i].Spec) {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys
}
