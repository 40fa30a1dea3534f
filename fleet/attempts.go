// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// outcome is how an attempt or a probe ended.
type outcome struct {
	kubeconfig *kubeconfig.Config
	conn       *Connection
	version    string
	fault      *Fault
}

// start begins what is due, and returns when to ask again.
func (l *link) start(ctx context.Context) time.Time {
	p := l.machine.plan(l.provider.options.Clock.Now())
	if p.dial {
		var attempting context.Context
		attempting, l.cancelDial = context.WithCancel(ctx)
		refused, unanswered := l.refused, l.unanswered // not l: timers of HTTP/2 hold the transport for a while after its end
		go l.dial(attempting, p.retry, attempt{
			root: ctx, kubeconfig: l.kubeconfig, subject: l.subject(l.kubeconfig), options: l.provider.options,
			unauthorized: func() { signal(refused) }, unanswered: func() { signal(unanswered) }, log: l.log,
		})
	}
	if p.refresh {
		l.refresh()
	}
	if p.probe {
		go l.probe(l.conn, l.subject(l.inUse))
	}
	return p.again
}

func (l *link) subject(k *kubeconfig.Config) subject {
	return subject{host: k.Host(), origin: l.machine.origin}
}

// dial makes one attempt. Its deadline starts when it has a slot.
func (l *link) dial(ctx context.Context, retry bool, a attempt) {
	release, err := l.provider.slots.acquire(ctx, retry)
	if err != nil { // nobody wants the outcome any more
		l.dialled <- outcome{kubeconfig: a.kubeconfig, fault: &Fault{Reason: ReasonConnecting}}
		return
	}
	defer release()
	timeout := a.options.FirstTimeout
	if retry {
		timeout = a.options.ConnectTimeout
	}
	attempting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, fault := a.connect(attempting)
	if fault == nil {
		if holder := l.provider.claims.claim(l, conn.uid); holder != nil {
			conn.close()
			conn, fault = nil, a.subject.duplicate(holder)
		}
	}
	o := outcome{kubeconfig: a.kubeconfig, conn: conn, fault: fault}
	if fault == nil {
		o.version = conn.Version()
	}
	if ctx.Err() == nil {
		countAttempt(fault)
	}
	l.dialled <- o
}

// probe asks the cluster for its version.
func (l *link) probe(conn *Connection, s subject) {
	ctx, cancel := context.WithTimeout(conn.ctx, l.provider.options.ProbeTimeout)
	defer cancel()
	start := l.provider.options.Clock.Now()
	version, fault := conn.prober.probe(ctx, s)
	observeProbe(l.provider.options.Clock.Since(start), fault)
	l.probed <- outcome{conn: conn, version: version, fault: fault}
}

// slots bound the attempts that run at the same time. First attempts and
// retries have slots of their own, so that clusters which keep failing never
// stand before one that hasn't been tried.
type slots struct{ first, retries chan struct{} }

func newSlots(n int) slots {
	return slots{first: make(chan struct{}, n), retries: make(chan struct{}, n)}
}

// acquire waits for a slot and returns what gives it back, or the context's error.
func (s slots) acquire(ctx context.Context, retry bool) (release func(), err error) {
	slot := s.first
	if retry {
		slot = s.retries
	}
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
