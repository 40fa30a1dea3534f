// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/internal/fleet"
	"github.com/cluster-chandler/chandler/internal/render"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// discoveryLags are when to look after a change of a CRD. The API server shows a new
// group in discovery at once, or nearly so; a kind that comes to a group it knows
// already, with the aggregator's next round, once a minute.
var discoveryLags = []time.Duration{2 * time.Second, 75 * time.Second}

// kindWatch watches which kinds come to a cluster, and go, where a chart asked for
// kinds (.Capabilities.APIVersions): the answers are part of the add-on's digest.
// Nothing is kept of the CRDs; that one changed is all that counts.
type kindWatch struct {
	queue *Queue

	mu      sync.Mutex
	watched map[*fleet.Connection]bool
}

func newKindWatch(queue *Queue) *kindWatch {
	return &kindWatch{queue: queue, watched: map[*fleet.Connection]bool{}}
}

// ensure watches the cluster's CRDs as long as the connection lasts, if the facts
// that a rendering used make it necessary.
func (k *kindWatch) ensure(name multicluster.ClusterName, conn *fleet.Connection, used render.FactsUsed) {
	if len(used.Has) == 0 && used.APIVersions == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watched[conn] {
		return
	}
	k.watched[conn] = true
	go func() {
		_ = contained(conn.Context(), name.String(), func() error {
			k.watch(conn.Context(), conn, func() {
				conn.InvalidateFacts()
				k.queue.AddCluster(name)
			})
			return nil
		})
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.watched, conn)
	}()
}

func (k *kindWatch) watch(ctx context.Context, conn *fleet.Connection, changed func()) {
	crds := conn.Metadata().Resource(crdResource)
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return crds.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return crds.Watch(ctx, o)
		},
	}
	heard := &changes{after: func() {
		for _, lag := range discoveryLags {
			time.AfterFunc(lag, changed)
		}
	}}
	toolscache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, heard, toolscache.ReflectorOptions{Name: "kinds"}).RunWithContext(ctx)
}

// changes is a reflector's store that keeps nothing, and tells of each change.
type changes struct{ after func() }

// Add implements cache.ReflectorStore.
func (c *changes) Add(any) error { c.after(); return nil }

// Update implements cache.ReflectorStore.
func (c *changes) Update(any) error { c.after(); return nil }

// Delete implements cache.ReflectorStore.
func (c *changes) Delete(any) error { c.after(); return nil }

// Replace implements cache.ReflectorStore. A list follows a gap, in which anything
// may have happened: the first one, the time since the kinds were discovered.
func (c *changes) Replace([]any, string) error { c.after(); return nil }

// Resync implements cache.ReflectorStore.
func (c *changes) Resync() error { return nil }
