// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// leaveTimeout is a part of the time that a pod has to end.
const leaveTimeout = 5 * time.Second

// leave lets go of the scope and deletes the object, if it is still ours. Should it
// fail, the next process of the instance, or the expiry, gets over it.
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

// again does something to our object, once more if somebody else wrote it since it
// was read.
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
