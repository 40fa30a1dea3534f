// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
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

// keepAlive writes heartbeats until the controllers have ended, whose error it
// returns, or the scope is lost.
func (r *Registration) keepAlive(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := r.o.Clock.NewTimer(r.o.Heartbeat / beatsToExpiry) // counts Clusters for the first time
	fence := r.o.Clock.NewTimer(r.life.left())
	defer next.Stop()
	defer fence.Stop()
	beats := make(chan error, 1)
	underway := false
	for {
		select {
		case err := <-ended:
			cancel()
			if underway {
				<-beats
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
			if err != nil {
				logf.FromContext(ctx).Info("The heartbeat failed", "error", err.Error(), "processEndsIn", r.life.left().Round(time.Millisecond).String())
			}
			fence.Stop()
			fence.Reset(r.life.left())
			next.Reset(r.untilNext(err))
		case <-fence.C():
			return fmt.Errorf("%w: no heartbeat could be written for %s, and others may take over soon", errLost, r.life.length)
		}
	}
}

// untilNext is the time to the next heartbeat: a failed one is tried again soon.
func (r *Registration) untilNext(failed error) time.Duration {
	if failed != nil {
		return r.o.Heartbeat / beatsToExpiry
	}
	return max(r.o.Heartbeat-r.o.Clock.Since(r.life.sent), 0)
}
