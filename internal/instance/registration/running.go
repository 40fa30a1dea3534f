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

// errLost says that another process holds the scope, or may soon.
var errLost = errors.New("the instance has lost its scope")

// run runs the controllers beside the heartbeat. When the context ends, heartbeats
// go on until the controllers have ended: until then others have to wait.
func (r *Registration) run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.o.Controllers(working) }()

	err := r.keepAlive(context.WithoutCancel(ctx), ended)
	if errors.Is(err, errLost) {
		err = fmt.Errorf("ProviderInstance %s: %w", r.key(), err)
		logf.FromContext(ctx).Error(err, "This process ends at once")
		r.o.Die(err)
		return err
	}
	r.leave(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return nil // what controllers say to a shutdown is no failure
	}
	return err
}

// keepAlive writes heartbeats until the scope is lost, or until the controllers end with an error.
func (r *Registration) keepAlive(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := r.o.Clock.NewTimer(r.life.Soon()) // counts Clusters for the first time
	fence := r.o.Clock.NewTimer(r.life.Left())
	defer next.Stop()
	defer fence.Stop()
	beats := make(chan error, 1)
	underway := false
	for {
		select {
		case err := <-ended:
			cancel()
			if underway {
				<-beats //nolint:errcheck // its error is the end of the context
			}
			return err
		case <-next.C():
			underway = true
			go func() { beats <- r.keep(ctx) }()
		case err := <-beats:
			underway = false
			if errors.Is(err, errLost) {
				return err
			}
			due := r.life.UntilNext()
			if err != nil {
				due = r.life.Soon()
				logf.FromContext(ctx).Info("The heartbeat failed", "error", err.Error(), "processEndsIn", r.life.Left().Round(time.Millisecond).String())
			}
			fence.Stop()
			fence.Reset(r.life.Left())
			next.Reset(due)
		case <-fence.C():
			return fmt.Errorf("%w: no heartbeat could be written for %s, and others may take over soon", errLost, r.life.Length())
		}
	}
}

// keep writes one heartbeat while the controllers run. The answer shows the object as it is.
func (r *Registration) keep(ctx context.Context) error {
	clusters := r.count(ctx)
	ctx, cancel := context.WithTimeout(ctx, max(r.o.Heartbeat/2, time.Second)) // there has to be time for another
	defer cancel()
	err := r.beat(ctx, clusters)
	switch {
	case apierrors.IsNotFound(err):
		return r.makeAnew(ctx)
	case apierrors.IsConflict(err): // it has another UID
		return fmt.Errorf("%w: somebody else made the object again", errLost)
	case err != nil:
		return err
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	r.compare(ctx)
	return nil
}

// compare looks now and then whether the CRDs have become newer than this program. The next heartbeat tells of it.
func (r *Registration) compare(ctx context.Context) {
	now := r.o.Clock.Now()
	if now.Sub(r.compared) < r.o.Compare {
		return
	}
	if api, _ := r.access.compatible(ctx); api.Status == metav1.ConditionTrue { // else nothing is known
		r.compared, r.result.api = now, api
		r.report(ctx)
	}
}

// inspect checks the object in the heartbeat's answer. If somebody took the claim out of it, another
// instance may have been granted the scope since. Other edits are put right.
func (r *Registration) inspect(ctx context.Context) error {
	spec, g := &r.object.Spec, r.object.Status.Grant
	switch {
	case spec.Holder != r.holder:
		return fmt.Errorf("%w: %s holds it", errLost, spec.Holder)
	case spec.Claim != addonsv1.ScopeClaiming || !instance.ScopeOf(spec).Equal(r.o.Scope):
		return fmt.Errorf("%w: somebody edited spec.claim, spec.namespaces or spec.watchFilter; only the instance writes these", errLost)
	case g == nil || g.State == addonsv1.GrantReserved: // it was made again
		return errors.New("the shared deployment hasn't granted the scope again yet")
	case !r.object.HoldsScope():
		return fmt.Errorf("%w: the claim of holder %s is %s. %s", errLost, g.Holder, g.State, g.Message)
	}
	if err := r.write(ctx, addonsv1.ScopeClaiming); err != nil {
		logf.FromContext(ctx).Info("The object was edited, and can't be put right yet", "error", err.Error())
	}
	return nil
}

// makeAnew makes the object again that somebody deleted. The shared deployment remembers it for as long as
// it would have lived, and grants the scope to nobody else. Until it has granted it again, no heartbeat counts.
func (r *Registration) makeAnew(ctx context.Context) error {
	if o := r.create(ctx, addonsv1.ScopeClaiming); o != nil {
		return errors.New(o.message)
	}
	return errors.New("somebody deleted the ProviderInstance of this running instance; it was made again")
}
