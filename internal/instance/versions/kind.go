// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind has the versions of the objects of one kind. It is an informer of their names and versions.
//
// Key: namespace and name.
// Bound: the objects of the namespaces, at 150 bytes each.
// Lost with it: each that an add-on or a Cluster refers to is read once more.
type kind struct {
	gvk      schema.GroupVersionKind
	resource metadata.Getter
	// namespaces are watched one by one; one that is "" means all.
	namespaces []string

	begin          func() // has run watch
	wanted, synced chan struct{}
	mu             sync.RWMutex
	listed         map[string]bool              // the namespaces of which a list has come
	versions       map[string]map[string]string // UID and resourceVersion by namespace and name
	handlers       map[*handler]bool
	stopped        bool
}

// handler is the registration of one.
type handler struct {
	toolscache.ResourceEventHandler
	*kind
}

func newKind(gvk schema.GroupVersionKind, resource metadata.Getter, namespaces map[string]cache.Config) *kind {
	k := &kind{
		gvk: gvk, resource: resource, namespaces: slices.Sorted(maps.Keys(namespaces)), wanted: make(chan struct{}), synced: make(chan struct{}),
		listed: map[string]bool{}, versions: map[string]map[string]string{}, handlers: map[*handler]bool{},
	}
	if len(namespaces) == 0 {
		k.namespaces = []string{metav1.NamespaceAll}
	}
	k.begin = sync.OnceFunc(func() { close(k.wanted) })
	return k
}

// run watches until the context ends, once that is wanted.
func (k *kind) run(ctx context.Context) {
	select {
	case <-k.wanted:
	case <-ctx.Done():
		return
	}
	var watches sync.WaitGroup
	for _, namespace := range k.namespaces {
		watched := k.resource.Namespace(namespace)
		from := &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return watched.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return watched.Watch(ctx, o)
			},
		}
		reflector := toolscache.NewReflectorWithOptions(from, &metav1.PartialObjectMetadata{}, &store{k, namespace}, toolscache.ReflectorOptions{
			Name: "versions", TypeDescription: k.Name(),
		})
		watches.Go(func() { reflector.RunWithContext(ctx) })
	}
	watches.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
}

// get writes what is known of an object.
func (k *kind) get(key client.ObjectKey, to *metav1.PartialObjectMetadata) error {
	if !slices.Contains(k.namespaces, key.Namespace) && !slices.Contains(k.namespaces, metav1.NamespaceAll) {
		return errors.New("namespace " + key.Namespace + " isn't watched")
	}
	k.mu.RLock()
	version, is := k.versions[key.Namespace][key.Name]
	k.mu.RUnlock()
	if !is {
		return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(k.gvk.Kind) + "s"}, key.Name)
	}
	*to = *k.object(key.Namespace, key.Name, version)
	return nil
}

// object returns an object that has a version.
func (k *kind) object(namespace, name, version string) *metav1.PartialObjectMetadata {
	uid, resourceVersion, _ := strings.Cut(version, "/")
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: resourceVersion,
	}}
	o.SetGroupVersionKind(k.gvk)
	return o
}

// AddEventHandler implements cache.Informer.
func (k *kind) AddEventHandler(to toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := &handler{to, k}
	k.handlers[h] = true
	return h, nil
}

// AddEventHandlerWithResyncPeriod implements cache.Informer, without resync.
func (k *kind) AddEventHandlerWithResyncPeriod(to toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return k.AddEventHandler(to)
}

// AddEventHandlerWithOptions implements cache.Informer, without resync.
func (k *kind) AddEventHandlerWithOptions(to toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return k.AddEventHandler(to)
}

// RemoveEventHandler implements cache.Informer.
func (k *kind) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, is := registration.(*handler); is {
		delete(k.handlers, h)
	}
	return nil
}

// AddIndexers implements cache.Informer: there is nothing to index.
func (k *kind) AddIndexers(toolscache.Indexers) error {
	return errors.New("of a " + k.gvk.Kind + " the version alone is kept")
}

// HasSynced implements cache.Informer.
func (k *kind) HasSynced() bool { return toolscache.IsDone(k) }

// HasSyncedChecker implements cache.Informer.
func (k *kind) HasSyncedChecker() toolscache.DoneChecker { return k }

// Name implements cache.DoneChecker.
func (k *kind) Name() string { return "versions of " + k.gvk.Kind + "s" }

// Done implements cache.DoneChecker.
func (k *kind) Done() <-chan struct{} { return k.synced }

// IsStopped implements cache.Informer.
func (k *kind) IsStopped() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.stopped
}
