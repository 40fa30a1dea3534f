// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// countTimeout bounds the wait for the cache, which has nothing at first.
const countTimeout = time.Second

// beat writes all of the status but the grant, which the answer shows. The success of the write is the sign of life.
func (r *Registration) beat(ctx context.Context, clusters *addonsv1.InstanceClusters) error {
	next := r.object.DeepCopy()
	for _, c := range append(r.result.parts(), r.result.ready()) {
		conditions.Set(next, c)
	}
	sent := r.o.Clock.Now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.object.UID}, // not another object of the name
		"status": map[string]any{
			"conditions":         next.Status.Conditions,
			"observedGeneration": next.Generation,
			"scope":              r.o.Scope.String(),
			"heartbeatTime":      metav1.NewMicroTime(sent),
			"clusters":           clusters,
			"sandbox":            r.o.Sandbox,
		},
	})
	if err != nil {
		return err
	}
	if err := r.client.Status().Patch(ctx, next, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of ProviderInstance %s: %w", r.key(), err)
	}
	r.object = next
	unmanagedClusters.Set(float64(next.Status.UnmanagedClusters))
	if next.HoldsScope() && next.Spec.Holder == r.holder {
		r.life.Sent = sent
	}
	return nil
}

// count counts Clusters by their ClusterAddons, nil while the cache doesn't have them.
func (r *Registration) count(ctx context.Context) *addonsv1.InstanceClusters {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	all := &addonsv1.ClusterAddonList{}
	if err := r.clusters.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	n := &addonsv1.InstanceClusters{Total: int32(len(all.Items))}
	for i := range all.Items {
		if conditions.IsTrue(&all.Items[i], addonsv1.ReadyCondition) {
			n.Ready++
		}
	}
	return n
}

// leaveTimeout is a part of the time that a pod has to end.
const leaveTimeout = 5 * time.Second

// leave lets go of the scope and deletes the object. If that fails, the expiry frees the scope.
func (r *Registration) leave(ctx context.Context) {
	if r.object == nil || r.object.Spec.Holder != r.holder {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	log := logf.FromContext(ctx)
	// Without it the scope is free once the object would have expired.
	if err := r.again(ctx, func(ctx context.Context) error { return r.write(ctx, addonsv1.ScopeWaiting) }); err != nil {
		log.Info("The claim couldn't be taken back", "error", err.Error())
	}
	if err := r.again(ctx, func(ctx context.Context) error {
		return r.client.Delete(ctx, r.object, client.Preconditions{UID: &r.object.UID, ResourceVersion: &r.object.ResourceVersion})
	}); client.IgnoreNotFound(err) != nil {
		log.Info("The ProviderInstance couldn't be deleted", "error", err.Error())
		return
	}
	log.Info("The instance has left")
}

// again does something to our object, once more if somebody else wrote it since it was read.
func (r *Registration) again(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if !apierrors.IsConflict(err) {
		return err
	}
	pi := &addonsv1.ProviderInstance{}
	if err := r.client.Get(ctx, r.key(), pi); err != nil {
		return err
	}
	if pi.UID != r.object.UID || pi.Spec.Holder != r.holder {
		return fmt.Errorf("%s holds it now", pi.Spec.Holder)
	}
	r.object = pi
	return do(ctx)
}
