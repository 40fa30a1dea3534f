// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// keep writes one heartbeat while the controllers run. Its answer shows whether the
// object is as it was left; no other request is needed.
func (r *Registration) keep(ctx context.Context) error {
	clusters := r.count(ctx)
	ctx, cancel := context.WithTimeout(ctx, r.patience())
	defer cancel()
	err := r.beat(ctx, clusters)
	switch {
	case apierrors.IsNotFound(err):
		return r.makeAnew(ctx)
	case apierrors.IsConflict(err): // it has another UID
		return fmt.Errorf("%w: somebody else made the object anew", errLost)
	case err != nil:
		return err
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	if !r.life.isValid() {
		return fmt.Errorf("%w: the heartbeat was answered too late", errLost)
	}
	return nil
}

// patience is how long a heartbeat may take: there has to be time for another.
func (r *Registration) patience() time.Duration { return max(r.o.Heartbeat/2, time.Second) }

// inspect looks at what the heartbeat's answer shows of the object. Where somebody
// took the claim out of it, another instance may have claimed since. What else was
// edited is put right.
func (r *Registration) inspect(ctx context.Context) error {
	spec := &r.object.Spec
	switch {
	case spec.Holder != r.holder:
		return fmt.Errorf("%w: %s holds it", errLost, spec.Holder)
	case spec.Claim != addonsv1.ScopeActive || !instance.ScopeOf(spec).Equal(r.o.Scope):
		return fmt.Errorf("%w: somebody edited spec.claim, spec.namespaces or spec.watchFilter; only the instance writes these", errLost)
	}
	if err := r.write(ctx, addonsv1.ScopeActive); err != nil {
		logf.FromContext(ctx).Info("The object was edited, and can't be put right yet", "error", err.Error())
	}
	return nil
}

// makeAnew makes the object again that somebody deleted. The webhooks remember it
// for as long as it would have lived, so nobody should have claimed in between.
func (r *Registration) makeAnew(ctx context.Context) error {
	logf.FromContext(ctx).Info("Somebody deleted the ProviderInstance of this running instance; it is made anew")
	deleted := r.object
	if o := r.create(ctx); o != nil {
		r.object = deleted
		return errors.New(o.message)
	}
	if c := r.claim(ctx); c.Status != metav1.ConditionTrue {
		return fmt.Errorf("%w: somebody deleted the object, and it can't be claimed again: %s", errLost, c.Message)
	}
	return r.beat(ctx, nil)
}
