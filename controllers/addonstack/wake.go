// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"path"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// PathChanged enqueues the stacks whose bundle is at a path of the artifact root.
func (r *Reconciler) PathChanged(ctx context.Context, changed string) {
	for _, key := range r.stacksWith(ctx, "", func(s *addonsv1.BundleSource) bool {
		return s.Path != "" && path.Clean(s.Path) == changed
	}) {
		r.wake.Add(key)
	}
}

// stacksOfConfigMap enqueues the stacks whose bundle is in a ConfigMap.
func (r *Reconciler) stacksOfConfigMap(ctx context.Context, obj client.Object) []client.ObjectKey {
	return r.stacksWith(ctx, obj.GetNamespace(), func(s *addonsv1.BundleSource) bool {
		return s.ConfigMap != nil && s.ConfigMap.Name == obj.GetName()
	})
}

// stacksOfSecret enqueues the stacks whose bundle, or the credentials for it, are in a Secret.
func (r *Reconciler) stacksOfSecret(ctx context.Context, obj client.Object) []client.ObjectKey {
	return r.stacksWith(ctx, obj.GetNamespace(), func(s *addonsv1.BundleSource) bool {
		return s.Secret != nil && s.Secret.Name == obj.GetName() ||
			s.OCI != nil && s.OCI.SecretRef != nil && s.OCI.SecretRef.Name == obj.GetName() ||
			s.HTTP != nil && s.HTTP.SecretRef != nil && s.HTTP.SecretRef.Name == obj.GetName()
	})
}

// stacksWith returns the stacks of a namespace whose source is such a one.
func (r *Reconciler) stacksWith(ctx context.Context, namespace string, such func(*addonsv1.BundleSource) bool) []client.ObjectKey {
	all := &addonsv1.AddonStackList{}
	if err := r.Client.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil // the cache is synced before events are handed on
	}
	var keys []client.ObjectKey
	for i := range all.Items {
		if from := all.Items[i].Spec.Source; from != nil && such(from) {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys
}
