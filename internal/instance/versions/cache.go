// SPDX-License-Identifier: Apache-2.0

// Package versions watches ConfigMaps and Secrets, and keeps of each the version alone: a namespace may have many that an
// instance never reads. Their other metadata would take ten times the memory.
package versions

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache is a cache of which a Get of the metadata of a ConfigMap or Secret returns name, UID and resourceVersion. Its informers
// of these have no initial events. All else is as in the cache that it is made of.
type Cache struct {
	cache.Cache
	kinds map[schema.GroupVersionKind]*kind
}

// New implements cache.NewCacheFunc.
func New(config *rest.Config, options cache.Options) (cache.Cache, error) {
	others, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	httpClient := options.HTTPClient
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	lister, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client for the metadata of ConfigMaps and Secrets: %w", err)
	}
	c := &Cache{Cache: others, kinds: map[schema.GroupVersionKind]*kind{}}
	for _, of := range []struct{ kind, resource string }{{"ConfigMap", "configmaps"}, {"Secret", "secrets"}} {
		gvk := corev1.SchemeGroupVersion.WithKind(of.kind)
		c.kinds[gvk] = newKind(gvk, lister.Resource(corev1.SchemeGroupVersion.WithResource(of.resource)), options.DefaultNamespaces)
	}
	return c, nil
}

// kindOf returns the kind of an object if its version alone is kept, else nil.
func (c *Cache) kindOf(object client.Object) *kind {
	if _, is := object.(*metav1.PartialObjectMetadata); !is {
		return nil
	}
	return c.kinds[object.GetObjectKind().GroupVersionKind()]
}

// Get implements client.Reader. The first one begins the watch.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	k := c.kindOf(object)
	if k == nil {
		return c.Cache.Get(ctx, key, object, options...)
	}
	k.begin()
	select {
	case <-k.synced:
	case <-ctx.Done():
		return apierrors.NewTimeoutError("waiting for the list of "+k.Name(), 0)
	}
	return k.get(key, object.(*metav1.PartialObjectMetadata))
}

// GetInformer implements cache.Informers.
func (c *Cache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if k := c.kindOf(object); k != nil {
		k.begin()
		return k, nil
	}
	return c.Cache.GetInformer(ctx, object, options...)
}

// Start implements cache.Informers. It returns when all watches have ended.
func (c *Cache) Start(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, k := range c.kinds {
		watches.Go(func() { k.run(ctx) })
	}
	return c.Cache.Start(ctx)
}
