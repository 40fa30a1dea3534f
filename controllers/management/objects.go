// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Objects reads objects of kinds that are known only once something names one, as a Cluster its infrastructure. Each kind is
// watched once it is asked for, in the version that the API server prefers.
//
// Key: the kind.
// Bound: the kinds that Clusters refer to, and those of Flux's sources.
// Lost with it: each kind is watched again.
type Objects struct {
	local   cluster.Cluster
	changed func(schema.GroupKind, client.ObjectKey)

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]cache.Informer
}

// NewObjects returns a reader that calls changed for each change of an object.
func NewObjects(local cluster.Cluster, changed func(schema.GroupKind, client.ObjectKey)) *Objects {
	return &Objects{local: local, changed: changed, watched: map[schema.GroupVersionKind]cache.Informer{}}
}

// ErrNotNamespaced refuses an object that any Cluster could refer to, whichever team it belongs to.
var ErrNotNamespaced = errors.New("its kind isn't namespaced, and it may be another team's; have the Cluster refer to an object of its namespace, or take this out of the template")

// Get returns an object. Its kind has to be namespaced.
func (o *Objects) Get(ctx context.Context, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	mapping, err := o.local.GetRESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, ErrNotNamespaced
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := o.watch(ctx, mapping.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	// Until the watch has begun, and for ever if RBAC forbids it, a direct read
	// gives the object, or the reason why not.
	reader := o.local.GetAPIReader()
	if informer.HasSynced() {
		reader = o.local.GetCache()
	}
	if err := reader.Get(ctx, key, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func (o *Objects) watch(ctx context.Context, gvk schema.GroupVersionKind) (cache.Informer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if informer, ok := o.watched[gvk]; ok {
		return informer, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	informer, err := o.local.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	notify := func(obj any) {
		if name, err := toolscache.DeletionHandlingObjectToName(obj); err == nil {
			o.changed(gvk.GroupKind(), name.AsNamespacedName())
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    notify,
		UpdateFunc: func(_, obj any) { notify(obj) },
		DeleteFunc: notify,
	}); err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	o.watched[gvk] = informer
	return informer, nil
}
