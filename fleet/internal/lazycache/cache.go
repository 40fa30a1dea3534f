// SPDX-License-Identifier: Apache-2.0

// Package lazycache has a cache of a cluster that only its readers wait for.
package lazycache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrNotSynced is returned by reads of a kind that the cluster hasn't listed in time.
var ErrNotSynced = errors.New("the cluster has not listed these objects yet")

// lazy is a cache that doesn't block the manager: only its readers wait for the first list. Controllers engage clusters one
// after the other, and wait for each cache: with this one, a cluster that never answers a list
// delays no other cluster.
type lazy struct {
	cache.Cache
	// wanted starts the cache at the first informer: one that nobody uses doesn't run.
	wanted func()
	causes *causes
}

// timeout is how long a read waits for the first list of its kind.
const timeout = 2 * time.Second

// New returns a cache that calls a function once it is wanted, to be started.
func New(config *rest.Config, options cache.Options, newCache cache.NewCacheFunc, wanted func()) (cache.Cache, error) {
	known := &causes{scheme: options.Scheme}
	known.watch(&options)
	of, err := newCache(config, options)
	return lazy{Cache: of, wanted: wanted, causes: known}, err
}

// WaitForCacheSync implements cache.Informers. It reports true at once: reads wait for themselves.
func (c lazy) WaitForCacheSync(ctx context.Context) bool { return ctx.Err() == nil }

// GetInformer implements cache.Informers. It never waits for the first list.
func (c lazy) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	c.wanted()
	return c.Cache.GetInformer(ctx, object, append(options, cache.BlockUntilSynced(false))...)
}

// GetInformerForKind implements cache.Informers. It never waits for the first list.
func (c lazy) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	c.wanted()
	return c.Cache.GetInformerForKind(ctx, kind, append(options, cache.BlockUntilSynced(false))...)
}

// Get implements client.Reader. It fails with ErrNotSynced if the kind isn't listed in time.
func (c lazy) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.read(ctx, object, func(ctx context.Context) error { return c.Cache.Get(ctx, key, object, options...) })
}

// List implements client.Reader. It fails with ErrNotSynced if the kind isn't listed in time.
func (c lazy) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.read(ctx, list, func(ctx context.Context) error { return c.Cache.List(ctx, list, options...) })
}

// read has the cache read. The cache waits for the first list of the kind, but not for its own start.
func (c lazy) read(ctx context.Context, into runtime.Object, read func(context.Context) error) error {
	c.wanted()
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(waiting, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := read(ctx)
		if _, starting := errors.AsType[*cache.ErrCacheNotStarted](err); starting {
			return false, nil
		}
		return true, err
	})
	if waiting.Err() != nil && ctx.Err() == nil {
		return c.notSynced(into)
	}
	return err
}

// notSynced names the kind, and why it isn't listed if that is known.
func (c lazy) notSynced(into runtime.Object) error {
	kind, err := apiutil.GVKForObject(into, c.causes.scheme)
	if err != nil {
		return fmt.Errorf("reading %T: %w", into, ErrNotSynced)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	name := kind.GroupVersion().String() + " " + kind.Kind
	switch cause := c.causes.of(kind); {
	case cause == nil:
		return fmt.Errorf("reading %s: %w", name, ErrNotSynced)
	case apierrors.IsNotFound(cause): // of the kind: the caller would take it for the object's
		return fmt.Errorf("reading %s: %w: %v", name, ErrNotSynced, cause) //nolint:errorlint // see above
	default:
		return fmt.Errorf("reading %s: %w: %w", name, ErrNotSynced, cause)
	}
}
