// SPDX-License-Identifier: Apache-2.0

// Package objects finds clusters by objects of the management cluster.
package objects

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
)

const (
	// workers read Secrets in parallel.
	workers = 10
	// firstRetry and longestRetry bound the time between reads of one that fail.
	firstRetry, longestRetry = 100 * time.Millisecond, 30 * time.Second
	// missingRecheck is how often a Secret that isn't there is looked for, in
	// case the manager's cache doesn't cover it. Up to half of it is taken off.
	missingRecheck = time.Minute
	// syncedRecheck is how often is looked if all that was there at the start is reconciled.
	syncedRecheck = 100 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Source reports the objects of one kind under the name "namespace/name". They come from the manager's cache.
type Source struct {
	// SourceName is that of the source, and Controller that of its controller.
	SourceName, Controller string
	// Object is of the kind, in the type by which it is read.
	Object client.Object
	// List has all objects listed at the start, so that Synced can be reported; nil if it isn't.
	List client.ObjectList
	// InScope reports whether an object is a cluster.
	InScope func(labels map[string]string) bool
	// Member returns what is to be reported of an object, whose credentials are in a Secret.
	Member func(context.Context, client.Object, *Reader) (fleet.Member, error)
	// Recheck has a missing Secret looked for again, without an event.
	Recheck bool

	secrets    *Reader
	sink       fleet.Sink
	cache      client.Reader
	queue      atomic.Pointer[queue]
	reconciled sync.Map // the names of objects that were reconciled, if there is a List
}

// Name implements fleet.Source.
func (s *Source) Name() string { return s.SourceName }

// SetupWithManager implements fleet.Source.
func (s *Source) SetupWithManager(mgr manager.Manager, sink fleet.Sink) error {
	s.cache, s.sink, s.secrets = mgr.GetCache(), sink, newReader(mgr.GetCache(), mgr.GetAPIReader())
	err := ctrl.NewControllerManagedBy(mgr).
		Named(s.Controller).
		For(s.Object).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(s.secrets.usersOf)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			s.queue.Store(&q)
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			SkipNameValidation:      ptr.To(true), // each Provider of a process has its own
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry),
		}).
		Complete(s)
	if err != nil {
		return fmt.Errorf("setting up the controller %s: %w", s.Controller, err)
	}
	if s.List == nil {
		return nil
	}
	return mgr.Add(manager.RunnableFunc(s.reportSynced))
}

// reportSynced waits until each object that is there at the start has been reconciled.
func (s *Source) reportSynced(ctx context.Context) error {
	list, _ := s.List.DeepCopyObject().(client.ObjectList) // which isn't kept
	if err := s.cache.List(ctx, list); err != nil {
		return fmt.Errorf("listing what is there at the start: %w", err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading what is there at the start: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, syncedRecheck, true, func(context.Context) (bool, error) {
		for _, object := range objects {
			name, err := toolscache.MetaNamespaceKeyFunc(object)
			if _, done := s.reconciled.Load(name); err != nil || !done {
				return false, err
			}
		}
		return true, nil
	})
	if err == nil {
		s.sink.Synced()
	}
	return nil // but for the end of the context, there is no error
}

// Refresh implements fleet.Source: the Secret is read again, and the object reconciled. Before the
// controller has started there is nothing to do: each object is reconciled then.
func (s *Source) Refresh(name multicluster.ClusterName) {
	namespace, object, _ := strings.Cut(name.String(), "/")
	key := types.NamespacedName{Namespace: namespace, Name: object}
	s.secrets.expire(key)
	if q := s.queue.Load(); q != nil {
		(*q).Add(reconcile.Request{NamespacedName: key})
	}
}

// Reconcile reports one object. It writes nothing.
func (s *Source) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if s.List != nil {
		defer s.reconciled.Store(request.String(), true)
	}
	name := multicluster.ClusterName(request.String())
	object, _ := s.Object.DeepCopyObject().(client.Object)
	err := s.cache.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting %s: %w", name, err)
	}
	if exists := err == nil; !exists || !s.InScope(object.GetLabels()) {
		s.secrets.Forget(request.NamespacedName)
		s.sink.Remove(name)
		return reconcile.Result{}, nil
	}
	m, err := s.Member(ctx, object, s.secrets)
	m.ID, m.Labels = string(object.GetUID()), object.GetLabels()
	s.sink.Set(name, m)
	if err == nil && m.Kubeconfig == nil && s.Recheck {
		return reconcile.Result{RequeueAfter: wait.Jitter(missingRecheck/2, 1)}, nil
	}
	return reconcile.Result{}, err
}
