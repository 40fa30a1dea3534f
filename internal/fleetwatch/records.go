// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/retry"
)

const (
	// recordsSelector is of the records that Chandler wrote, for any owner.
	recordsSelector = addonsv1.AddonLabel + ",owner=helm,"
	// failureStays is how long the failure of a watch that broke its limits is
	// reported after it was begun again: the next one may do the same.
	failureStays = 2 * time.Minute
)

var secretResource = corev1.SchemeGroupVersion.WithResource("secrets")

// Records watches the metadata of the release records of every engaged cluster.
// Each takes one LIST and one WATCH. An add-on that is as it should be takes no
// request afterwards.
//
// Key: the cluster.
// Bound: the records that a recordStore keeps.
// Lost with it: records are listed again.
type Records struct {
	// owner returns the "namespace/name" of a cluster's ClusterAddon.
	owner func(multicluster.ClusterName) string
	// proofs returns those of the owner's records, by release.
	proofs  func(context.Context, multicluster.ClusterName) map[deliver.Release]string
	changed func(multicluster.ClusterName)
	// restored is called when a cluster has gone back to a previous state.
	restored func(multicluster.ClusterName)
	clock    clock.WithTicker
	// timeout is the one of [metadataWatch].
	timeout time.Duration

	mu       sync.RWMutex
	clusters map[multicluster.ClusterName]*clusterRecords
}

// NewRecords returns a watch of the records that are of a cluster's owner, the "namespace/name" of its
// ClusterAddon. Where there are too many, those with one of the proofs stay. It calls changed when a cluster has other records. It calls
// restored when a cluster shows those of a previous time: then nothing that was known of the
// cluster holds, and it is connected again.
func NewRecords(
	owner func(multicluster.ClusterName) string, proofs func(context.Context, multicluster.ClusterName) map[deliver.Release]string,
	changed, restored func(multicluster.ClusterName),
) *Records {
	return &Records{
		owner: owner, proofs: proofs, changed: changed, restored: restored, clock: clock.RealClock{}, clusters: map[multicluster.ClusterName]*clusterRecords{},
	}
}

// Start blocks until the context ends: all work is done for each cluster, as long as it is
// engaged.
func (w *Records) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Engage starts watching a cluster's records. It doesn't wait for them.
func (w *Records) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	conn, ok := cl.(interface {
		metadataServer
		Restored()
	})
	if !ok {
		return fmt.Errorf("the records of a %T can't be watched", cl)
	}
	known := &clusterRecords{owner: w.owner(name), changed: func() { w.changed(name) }}
	w.mu.Lock()
	w.clusters[name] = known
	w.mu.Unlock()
	go func() {
		keepTrying(ctx, name.String(), retry.Watch.DelayWithReset(w.clock, failureStays), func(ctx context.Context) {
			if err := w.watch(ctx, name, known, conn); errors.Is(err, errPreviousState) {
				logf.FromContext(ctx).Info("Connecting again: "+err.Error(), "Cluster", name)
				w.restored(name)
				conn.Restored()
			}
		})
		w.forget(name, known)
	}()
	return nil
}

// forget drops what is known of a connection that is over. The cluster may have a new one.
func (w *Records) forget(name multicluster.ClusterName, known *clusterRecords) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clusters[name] == known {
		delete(w.clusters, name)
	}
}

// watch lists and watches until something fails, or the records are those of a previous time.
func (w *Records) watch(ctx context.Context, name multicluster.ClusterName, known *clusterRecords, server metadataServer) error {
	note := func(err error) {
		if ctx.Err() == nil && known.note(w.clock.Now(), err) {
			w.changed(name)
			if err != nil {
				logf.FromContext(ctx).Error(err, "Watching release records failed; trying again", "Cluster", name)
			}
		}
	}
	var set *recordSet
	f := metadataWatch{
		server: server, resource: secretResource, selector: recordsSelector + record.OwnerSelector(known.owner), clock: w.clock, timeout: w.timeout,
		// A server that was restored from a backup shows an older state, and would accept a watch of what is newer.
		cutIsFailure: true,
		list: func(ctx context.Context, secrets metadata.ResourceInterface, o metav1.ListOptions) (string, error) {
			if _, filled := known.list(); !filled {
				o.ResourceVersion = "0" // later a cache of the API server may be older than what is known
			}
			set = newRecordSet(known.owner, func() map[deliver.Release]string { return w.proofs(ctx, name) })
			return listPages(ctx, secrets, o, func(m *metav1.PartialObjectMetadata) error {
				set.put(m)
				return nil
			})
		},
		listed: func(version string) error {
			note(nil)
			return known.replace(set, version)
		},
		changed: known.change,
	}
	err := f.run(ctx)
	if err != nil && !errors.Is(err, errPreviousState) && !errors.Is(err, errWatchCut) && !isExpired(err) {
		note(err)
	}
	return err
}

// Failure returns why the records of a cluster can't be read or followed; nil if they can.
func (w *Records) Failure(name multicluster.ClusterName) error {
	known := w.of(name)
	known.mu.RLock()
	defer known.mu.RUnlock()
	return known.err
}

// Of returns the newest record of each release that Chandler installed on the
// cluster, for its owner. It is false until they have been read once.
func (w *Records) Of(name multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool) {
	records, known := w.of(name).list()
	return record.Newest(records), known
}

// of returns what is known of a cluster's records; nothing if it isn't engaged.
func (w *Records) of(name multicluster.ClusterName) *clusterRecords {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return cmp.Or(w.clusters[name], &clusterRecords{})
}

// IsLasting reports whether a failure to read records is an answer, which another try
// won't change, and not a connection that broke.
func IsLasting(err error) bool {
	return exceedsLimit(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// exceedsLimit reports whether a cluster answers with too much, and not only with more than there is memory for now.
func exceedsLimit(err error) bool {
	limit, exceeded := errors.AsType[*fleet.LimitError](err)
	return exceeded && limit.Reason != fleet.WaitingForMemory
}
