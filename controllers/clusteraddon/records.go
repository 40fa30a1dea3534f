// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// watchRetry is when to try again to watch a cluster's records: what fails is the
// discovery before it, as when the API server is just starting.
const watchRetry = 5 * time.Second

// recordWatch watches the metadata of the release records of every engaged
// cluster: one LIST and one WATCH for each, and no request afterwards for an
// add-on that is as it should be.
type recordWatch struct {
	queue *Queue

	mu     sync.RWMutex
	synced map[multicluster.ClusterName]cluster.Cluster
}

func newRecordWatch(queue *Queue) *recordWatch {
	return &recordWatch{queue: queue, synced: map[multicluster.ClusterName]cluster.Cluster{}}
}

// Start blocks: all work is done for each cluster, as long as it is engaged.
func (w *recordWatch) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Engage starts watching a cluster's records. It doesn't wait for them.
func (w *recordWatch) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := contained(ctx, name.String(), func() error { return w.watch(ctx, name, cl) }); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Watching release records failed; trying again", "Cluster", name)
		}
	}, watchRetry)
	return nil
}

func (w *recordWatch) watch(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	informer, err := cl.GetCache().GetInformer(ctx, secretMetadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	notify := func(any) { w.queue.AddCluster(name) }
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if !isInInitialList {
				notify(obj)
			}
		},
		UpdateFunc: func(_, obj any) { notify(obj) },
		DeleteFunc: notify,
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	w.mu.Lock()
	w.synced[name] = cl
	w.mu.Unlock()
	w.queue.AddCluster(name)

	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.synced[name] == cl {
		delete(w.synced, name)
	}
	return nil
}

// of returns the newest record of each release that Chandler installed on the
// cluster. It is false until they have been read once.
func (w *recordWatch) of(ctx context.Context, name multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool, error) {
	w.mu.RLock()
	cl, ok := w.synced[name]
	w.mu.RUnlock()
	if !ok {
		return nil, false, nil
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := cl.GetCache().List(ctx, secrets, client.MatchingLabels{"owner": "helm"}); err != nil {
		return nil, false, fmt.Errorf("listing the release records of Cluster %s: %w", name, err)
	}
	return deliver.Summarize(secrets.Items), true, nil
}

func secretMetadata() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}
