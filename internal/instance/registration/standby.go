// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Standby is a runnable of the manager beside the registration. On a replica that isn't elected yet it looks whether the
// installed CRDs have what this program needs. Else a rollout to a newer release would end the replica that works, and
// leave those that can't.
func (r *Registration) Standby() manager.Runnable {
	return standby{r.elected, &r.access, &r.standby, r.o.Clock, r.o.Heartbeat}
}

type standby struct {
	elected   <-chan struct{} // nil without leader election
	access    *access
	problem   *atomic.Value // string: why this isn't ready to lead, "" if it is
	clock     clock.Clock
	heartbeat time.Duration
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (standby) NeedLeaderElection() bool { return false }

// Start looks until nothing is missing, or the replica is elected.
func (s standby) Start(ctx context.Context) error {
	if s.elected == nil {
		return nil
	}
	log := logf.FromContext(ctx).WithName("registration")
	for failed, before := 0, ""; ; failed++ {
		c := s.look(ctx)
		problem := describe(firstProblem(c))
		s.problem.Store(problem)
		if problem == "" {
			return nil
		}
		if c.Reason != before {
			log.Info("The replica isn't ready to lead", "reason", c.Reason, "message", c.Message)
			before, failed = c.Reason, 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.elected:
			return nil
		case <-s.clock.After(backoff(s.heartbeat, failed)):
		}
	}
}

func (s standby) look(ctx context.Context) metav1.Condition {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, _ := s.access.compatible(ctx)
	return c
}
