// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrCacheNotSynced is returned by reads from the cache of a cluster that hasn't listed the
// kind in time. Return it from a reconcile, and the request is tried again.
var ErrCacheNotSynced = errors.New("the cluster has not listed these objects yet")

// patientCache is a cache for which nobody but its readers waits. Controllers engage clusters one
// after the other, and wait for each cache: with this one, a cluster that never answers a list
// holds up nobody else.
type patientCache struct {
	cache.Cache
	scheme *runtime.Scheme
	// wanted starts the cache at the first informer: one that nobody uses doesn't run.
	wanted func()
}

// cacheTimeout is how long a read waits for the first list of its kind.
const cacheTimeout = 2 * time.Second

// WaitForCacheSync implements cache.Informers. It reports true at once: reads wait for themselves.
func (c patientCache) WaitForCacheSync(ctx context.Context) bool { return ctx.Err() == nil }

// GetInformer implements cache.Informers. It never waits for the first list.
func (c patientCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	c.wanted()
	return c.Cache.GetInformer(ctx, object, append(options, cache.BlockUntilSynced(false))...)
}

// GetInformerForKind implements cache.Informers. It never waits for the first list.
func (c patientCache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	c.wanted()
	return c.Cache.GetInformerForKind(ctx, kind, append(options, cache.BlockUntilSynced(false))...)
}

// Get implements client.Reader. It fails with ErrCacheNotSynced if the kind isn't listed in time.
func (c patientCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.synced(ctx, object); err != nil {
		return err
	}
	return c.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader. It fails with ErrCacheNotSynced if the kind isn't listed in time.
func (c patientCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	object, err := c.elementOf(list)
	if err != nil {
		return err
	}
	if err := c.synced(ctx, object); err != nil {
		return err
	}
	return c.Cache.List(ctx, list, options...)
}

// synced waits until the objects of a kind were listed.
func (c patientCache) synced(ctx context.Context, object client.Object) error {
	informer, err := c.GetInformer(ctx, object)
	if err != nil {
		return err
	}
	if informer.HasSynced() {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if !toolscache.WaitForCacheSync(waiting.Done(), informer.HasSynced) {
		return fmt.Errorf("reading %T: %w", object, ErrCacheNotSynced)
	}
	return nil
}

// elementOf returns an object of the kind that a list holds, in the same form.
func (c patientCache) elementOf(list client.ObjectList) (client.Object, error) {
	kind, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return nil, err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	switch list.(type) {
	case runtime.Unstructured:
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		return object, nil
	case *metav1.PartialObjectMetadataList:
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		return object, nil
	}
	made, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", kind)
	}
	return object, nil
}
