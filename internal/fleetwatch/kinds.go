// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Kinds watches which kinds come to a cluster, and go, where a chart asked for
// kinds (.Capabilities.APIVersions): the answers are part of the add-on's digest.
// Nothing is kept of the CRDs; that one changed is all that counts.
type Kinds struct {
	changed func(multicluster.ClusterName)
	watched sync.Map // *fleet.Connection that is watched
}

// NewKinds returns a watch that calls changed when a cluster has other kinds.
func NewKinds(changed func(multicluster.ClusterName)) *Kinds { return &Kinds{changed: changed} }

// Ensure watches the cluster's CRDs as long as the connection lasts, if the facts
// that a rendering used make it necessary.
func (k *Kinds) Ensure(name multicluster.ClusterName, conn *fleet.Connection, used job.FactsUsed) {
	if len(used.Has) == 0 && used.APIVersions == "" {
		return
	}
	if _, already := k.watched.LoadOrStore(conn, true); already {
		return
	}
	ctx := conn.Context()
	context.AfterFunc(ctx, func() { k.watched.Delete(conn) })
	heard := make(chan struct{}, 1)
	pauses := func() wait.DelayFunc { return retry.Watch.DelayWithReset(clock.RealClock{}, failureStays) }
	go keepTrying(ctx, name.String(), pauses(), func(ctx context.Context) { watchKinds(ctx, conn, heard) })
	go keepTrying(ctx, name.String(), pauses(), func(ctx context.Context) {
		lookAtKinds(ctx, heard, func() (fleet.Facts, error) {
			conn.InvalidateFacts()
			return conn.Facts(ctx)
		}, func() { k.changed(name) })
	})
}

// watchKinds tells of changes of CRDs until something fails.
func watchKinds(ctx context.Context, server metadataServer, heard chan<- struct{}) {
	hear := func() {
		select {
		case heard <- struct{}{}:
		default: // a look is due already
		}
	}
	f := metadataWatch{
		server: server, resource: crdResource, clock: clock.RealClock{},
		list: func(ctx context.Context, crds metadata.ResourceInterface, o metav1.ListOptions) (string, error) {
			o.Limit = 1 // the version of the list alone is of use
			list, err := crds.List(ctx, o)
			if err != nil {
				return "", err
			}
			return list.ResourceVersion, nil
		},
		// A list follows a gap, in which anything may have happened: the first one, the time since the kinds were discovered.
		listed:  func(string) error { hear(); return nil },
		changed: func(*metav1.PartialObjectMetadata, bool) error { hear(); return nil },
	}
	_ = f.run(ctx) // what a broken watch missed is heard of with the next list
}

// lookPauses are those before the looks that follow a change of a CRD. The API server shows
// a new group in discovery at once, or nearly so. It shows a kind that comes to a group it
// knows already with the aggregator's next round, once a minute.
var lookPauses = []time.Duration{2 * time.Second, 8 * time.Second, 20 * time.Second, 45 * time.Second}

// lookAtKinds discovers the kinds after changes, until the context ends, and calls changed when there are others.
func lookAtKinds(ctx context.Context, heard <-chan struct{}, discover func() (fleet.Facts, error), changed func()) {
	var known fleet.Facts // none: the first look may be after a change that nobody heard of
	pause := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for rest := retry.Kinds; ; {
		select {
		case <-ctx.Done():
			return
		case <-heard:
		}
		news := false
		for _, before := range lookPauses {
			if !pause(before) {
				return
			}
			if facts, err := discover(); err == nil && !reflect.DeepEqual(facts, known) {
				known, news = facts, true
				changed()
			}
		}
		if news || len(heard) == 0 {
			rest = retry.Kinds
		} else if !pause(rest.Step()) {
			return
		}
	}
}
