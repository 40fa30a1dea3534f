// SPDX-License-Identifier: Apache-2.0

package clusteraddon

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

// providerObjects reads the control plane and infrastructure objects that
// values templates refer to. Their kinds are known only from the Clusters, so
// each kind is watched from the first time it is asked for.
//
// The version is the one that the API server prefers: that is the newest one
// that the provider serves, and to find it takes no access to CRDs.
type providerObjects struct {
	hub   cluster.Cluster
	users *references
	queue *Queue

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]cache.Informer
}

func newProviderObjects(hub cluster.Cluster, users *references, queue *Queue) *providerObjects {
	return &providerObjects{hub: hub, users: users, queue: queue, watched: map[schema.GroupVersionKind]cache.Informer{}}
}

// errNotNamespaced: any Cluster could refer to such an object, whoever it belongs to.
var errNotNamespaced = errors.New("its kind isn't namespaced, and it may be another team's; have the Cluster refer to an object of its namespace, or take this out of the template")

func (o *providerObjects) get(ctx context.Context, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	mapping, err := o.hub.GetRESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, errNotNamespaced
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := o.watch(ctx, mapping.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	// Until the watch has begun, and for ever if RBAC forbids it, a direct read
	// gives the object, or the reason why not.
	reader := o.hub.GetAPIReader()
	if informer.HasSynced() {
		reader = o.hub.GetCache()
	}
	if err := reader.Get(ctx, key, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func (o *providerObjects) watch(ctx context.Context, gvk schema.GroupVersionKind) (cache.Informer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if informer, ok := o.watched[gvk]; ok {
		return informer, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	informer, err := o.hub.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	notify := func(obj any) { o.changed(gvk.GroupKind(), obj) }
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

// changed enqueues the ClusterAddons that take values from the object.
func (o *providerObjects) changed(kind schema.GroupKind, obj any) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if changed, ok := obj.(client.Object); ok {
		for _, user := range o.users.of(object{kind: kindOf(kind), key: client.ObjectKeyFromObject(changed)}) {
			o.queue.Add(user)
		}
	}
}

func kindOf(kind schema.GroupKind) string { return kind.String() }
