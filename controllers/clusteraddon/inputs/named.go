// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// NameSources gives the sources of values the names that they have for this cluster. A failure is the add-on's.
func (q Reader) NameSources(ctx context.Context, all []wanted.Addon) {
	for i := range all {
		a := &all[i]
		a.Sources, a.Unnamed = q.Values.Named(ctx, &a.Addon)
	}
}

// ObjectsFrom returns what reads the objects of a namespace that Clusters refer to. Each one is watched from then on.
func ObjectsFrom(provider *management.Objects, namespace string) func(context.Context, string, clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, root string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
		key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
		obj, err := provider.Get(ctx, ref.GroupKind(), key)
		if errors.Is(err, management.ErrNotNamespaced) {
			return nil, failure.New(reasons.ProviderObjectRefused, ".%s, %s %s: %w", root, ref.Kind, ref.Name, err)
		}
		if err != nil {
			return nil, failure.New(reasons.ProviderObjectUnavailable, "reading .%s, %s %s: %w", root, ref.Kind, key, err)
		}
		return obj, nil
	}
}
