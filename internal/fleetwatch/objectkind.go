// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// maxObjects is how many objects of add-ons are kept of one cluster, about 200 bytes of each.
const maxObjects = 20_000

// maxKinds is how many kinds of add-ons' objects are watched on one cluster. Each takes a connection's
// stream, a goroutine and about 10 KiB.
const maxKinds = 500

// Why kinds aren't watched.
var (
	errKindsOfRecord  = errors.New("the release record names more kinds than its add-on has objects")
	errKindsOfCluster = fmt.Errorf("the add-ons of the cluster have more than %d kinds", maxKinds)
)

var errTooManyObjects = &fleet.LimitError{
	Reason:  reasons.ResponseTooLarge,
	Message: fmt.Sprintf("the workload cluster has more than %d objects with the label %s", maxObjects, addonsv1.AddonLabel),
}

// sums returns those of the record, with the first of the kinds that are more than it has objects.
func (e Expected) sums() (drift.Sums, schema.GroupKind) {
	return drift.ParseSums(e.Applied, min(e.Objects+1, maxKinds))
}

// wantedKinds returns the kinds that are to be watched. Add-ons with few kinds come first, so that
// records which name very many take nothing from them. The caller has the lock.
func (c *clusterObjects) wantedKinds() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	inOrder := slices.SortedFunc(maps.Keys(c.releases), func(a, b deliver.Release) int {
		return cmp.Or(len(c.releases[a].wanted)-len(c.releases[b].wanted), byName(a, b))
	})
	for _, release := range inOrder {
		for _, kind := range slices.SortedFunc(maps.Keys(c.releases[release].wanted), byName) {
			if len(kinds) < maxKinds {
				kinds[kind] = true
			}
		}
	}
	return kinds
}

func byName[T fmt.Stringer](a, b T) int { return cmp.Compare(a.String(), b.String()) }

// kindOfObjects are the objects of one kind.
type kindOfObjects struct {
	cluster *clusterObjects
	kind    schema.GroupKind
	stop    context.CancelFunc

	// These are guarded by the lock of the cluster.
	objects map[types.NamespacedName]seenObject // nil until they have been listed
	sums    map[deliver.Release]drift.Sum
	err     error // why they can't be watched
}

// start watches a kind. The caller has the lock.
func (c *clusterObjects) start(kind schema.GroupKind) {
	ctx, cancel := context.WithCancel(c.conn.Context())
	k := &kindOfObjects{cluster: c, kind: kind, stop: cancel}
	c.kinds[kind] = k
	go keepTrying(ctx, c.name, retry.Objects.DelayWithReset(c.clock, retry.Objects.Cap), func(ctx context.Context) {
		err := k.watch(ctx)
		if !isUnwatchable(err) {
			return
		}
		k.note(err)
		select {
		case <-ctx.Done():
		case <-c.clock.After(wait.Jitter(retry.Unwatchable, 0.2)):
		}
	})
}

// isKnown reports whether the objects have been listed and are watched.
func (k *kindOfObjects) isKnown() bool { return k != nil && k.objects != nil && k.err == nil }

// note keeps why the kind can't be watched.
func (k *kindOfObjects) note(err error) {
	c := k.cluster
	c.mu.Lock()
	news := c.kinds[k.kind] == k && (k.err == nil || k.err.Error() != err.Error())
	if news {
		k.err = err
		c.objects -= len(k.objects)
		k.objects, k.sums = nil, nil
	}
	c.mu.Unlock()
	if news {
		c.notify()
	}
}

// isUnwatchable reports whether the kind can't be listed or watched, or not by this user. A
// connection that broke is another matter, and so is a lack of memory: what is known holds until it is there again.
func isUnwatchable(err error) bool {
	return exceedsLimit(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// watch lists and watches until the context ends, or something fails.
func (k *kindOfObjects) watch(ctx context.Context) error {
	mapping, err := k.mapping(ctx)
	if err != nil {
		return err
	}
	selector := addonsv1.AddonLabel
	if k.kind == (schema.GroupKind{Kind: "Secret"}) {
		selector += ",owner notin (helm,chandler)" // release records change all the time
	}
	var objects map[types.NamespacedName]seenObject
	var sums map[deliver.Release]drift.Sum
	f := metadataWatch{
		server: k.cluster.conn, resource: mapping.Resource, selector: selector, clock: k.cluster.clock,
		list: func(ctx context.Context, kind metadata.ResourceInterface, o metav1.ListOptions) (string, error) {
			objects, sums = map[types.NamespacedName]seenObject{}, map[deliver.Release]drift.Sum{}
			number := 0
			return listPages(ctx, kind, o, func(m *metav1.PartialObjectMetadata) error {
				if number++; number > k.cluster.limit {
					return errTooManyObjects
				}
				put(objects, sums, nameOf(m), objectOf(m))
				return nil
			})
		},
		listed:  func(string) error { return k.replace(objects, sums) },
		changed: k.change,
	}
	return f.run(ctx)
}

// mapping returns where the kind is. The connection's mapper keeps the versions that it knows, so the
// cluster is asked for those of a kind that wasn't there: a CRD may have others by now.
func (k *kindOfObjects) mapping(ctx context.Context) (*meta.RESTMapping, error) {
	c := k.cluster
	c.mu.Lock()
	isGone := apierrors.IsNotFound(k.err) || meta.IsNoMatchError(k.err)
	c.mu.Unlock()
	if isGone {
		c.conn.InvalidateFacts()
		if _, err := c.conn.Facts(ctx); err != nil {
			return nil, err
		}
	}
	return c.conn.Client().RESTMapper().RESTMapping(k.kind)
}
