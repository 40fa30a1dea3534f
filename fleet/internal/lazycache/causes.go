// SPDX-License-Identifier: Apache-2.0

package lazycache

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cluster-chandler/chandler/fleet/limits"
)

// causes are the errors with which lists and watches of a cache ended last.
// The key is the kind, so there is no more than one for each informer of the cache.
// They end with the cache. A message without a cause is all that is lost with them.
type causes struct {
	scheme *runtime.Scheme
	byKind sync.Map // schema.GroupVersionKind to error
}

// watch has the informers of a cache report their errors here, and then where they did before.
func (c *causes) watch(options *cache.Options) {
	newInformer, then := options.NewInformer, options.DefaultWatchErrorHandler
	if newInformer == nil {
		newInformer = toolscache.NewSharedIndexInformer
	}
	if then == nil {
		then = toolscache.DefaultWatchErrorHandler
	}
	options.DefaultWatchErrorHandler = nil // it would take the place of ours
	options.NewInformer = func(of toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		informer := newInformer(of, object, resync, indexers)
		kind, err := apiutil.GVKForObject(object, c.scheme)
		handle := then
		if err == nil {
			handle = func(ctx context.Context, r *toolscache.Reflector, err error) {
				c.byKind.Store(kind, essence(err))
				then(ctx, r, err)
			}
		}
		_ = informer.SetWatchErrorHandlerWithContext(handle) // it fails only once the informer runs
		return informer
	}
}

// of returns the last error of a kind, or nil.
func (c *causes) of(kind schema.GroupVersionKind) error {
	cause, _ := c.byKind.Load(kind)
	err, _ := cause.(error)
	return err
}

// essence returns what the server said, or which limit it exceeded, without the words around it.
func essence(err error) error {
	if exceeded, ok := errors.AsType[*limits.Error](err); ok {
		return exceeded
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status
	}
	return err
}
