// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrCacheNotSynced is returned by reads from the cache of a cluster that hasn't listed the
// kind in time. Return it from a reconcile, and the request is tried again.
var ErrCacheNotSynced = errors.New("the cluster has not listed these objects yet")

// patientCache is a cache for which nobody but its readers waits. Controllers engage clusters one
// after the other, and wait for each cache: with this one, a cluster that never answers a list
// holds up nobody else.
type patientCache struct {
	cache.Cache
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
	return c.read(ctx, object, func(ctx context.Context) error { return c.Cache.Get(ctx, key, object, options...) })
}

// List implements client.Reader. It fails with ErrCacheNotSynced if the kind isn't listed in time.
func (c patientCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.read(ctx, list, func(ctx context.Context) error { return c.Cache.List(ctx, list, options...) })
}

// read has the cache read. The cache waits for the first list of the kind, but not for its own start.
func (c patientCache) read(ctx context.Context, into runtime.Object, read func(context.Context) error) error {
	c.wanted()
	waiting, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(waiting, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := read(ctx)
		if _, starting := errors.AsType[*cache.ErrCacheNotStarted](err); starting {
			return false, nil
		}
		return true, err
	})
	if waiting.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("reading %T: %w", into, ErrCacheNotSynced)
	}
	return err
}
