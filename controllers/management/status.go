// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/changes"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// writeTimeout bounds the write of a status, also when the time of the reconcile is over.
const writeTimeout = 10 * time.Second

// Retry returns the result of a reconcile that ended with a write. After a conflict it comes again soon.
func Retry(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		logf.FromContext(ctx).Info("Another write came first; looking again", "answer", err.Error())
		return ctrl.Result{RequeueAfter: retry.Cache}, nil
	}
	return result, err
}

// Statuses writes the statuses of one kind. It remembers the version that each write made, so that
// no reconcile decides on an older one from the cache.
//
// Key: the object.
// Bound: a minute after a write.
// Lost with it: a reconcile may decide on what the cache still shows.
type Statuses struct {
	Client client.Client
	Clock  clock.PassiveClock

	versions sync.Map // client.ObjectKey to the version of the last write
}

// version that a write made, and when.
type version struct {
	resourceVersion string
	at              time.Time
}

// staleFor bounds how long the cache may be behind. After that versions went back, as by a restore.
const staleFor = time.Minute

// Stale reports whether the cache doesn't show the last write of this object yet.
func (s *Statuses) Stale(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	last, ok := s.versions.Load(key)
	if !ok {
		return false
	}
	written := last.(version)
	if s.Clock.Since(written.at) > staleFor {
		s.versions.CompareAndDelete(key, last)
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), written.resourceVersion)
	return err == nil && order < 0
}

// progressPause is the least time between two writes of a status that tell of progress alone. Else a cluster that installs add-ons
// would have its status, and those of its AddonStacks, written for each object that becomes ready.
const progressPause = 2 * time.Second

// Pause returns how long a status that tells of progress alone isn't to be written yet, 0 if it may be now.
func (s *Statuses) Pause(key client.ObjectKey) time.Duration {
	last, ok := s.versions.Load(key)
	if !ok {
		return 0
	}
	return max(0, progressPause-s.Clock.Since(last.(version).at))
}

// Forget drops what is remembered of an object that is gone.
func (s *Statuses) Forget(key client.ObjectKey) { s.versions.Delete(key) }

// Patch writes the status that a reconcile made of an object, in one request, and
// none if it made no difference. An object that is gone is no error. Another write since the
// object was read makes it a conflict, see [Retry].
//
// Cluster API's patch helper takes two requests, conditions first: whoever waits
// for a condition would see it beside an older status.
func (s *Statuses) Patch(ctx context.Context, before, after client.Object) error {
	if ca, ok := after.(*addonsv1.ClusterAddon); ok {
		cutTexts(&ca.Status)
	}
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch, err := Changes(before, after)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	key := client.ObjectKeyFromObject(after)
	if err := s.Client.Status().Patch(ctx, after, patch); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("writing the status of %T %s: %w", after, key, err)
		}
		return nil
	}
	s.versions.Store(key, version{resourceVersion: after.GetResourceVersion(), at: s.Clock.Now()})
	return nil
}

// maxOperations keeps below the 10,000 that the API server takes. A patch of more,
// as when most of a thousand add-ons change at once, replaces lists as a whole.
const maxOperations = 9000

// Changes returns the patch that changes what differs between before and after, and nothing
// else. The API server answers with a conflict if the object was written since before was read.
func Changes(before, after client.Object) (client.Patch, error) {
	p, err := changes.Between(before, after)
	if err != nil {
		return nil, fmt.Errorf("patch of %s: %w", after.GetName(), err)
	}
	if len(p) > maxOperations {
		return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), nil
	}
	lock := changes.Operation{Op: "replace", Path: "/metadata/resourceVersion", Value: before.GetResourceVersion()}
	data, err := json.Marshal(slices.Insert(p, 0, lock))
	if err != nil {
		return nil, fmt.Errorf("patch of %s: %w", after.GetName(), err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}
