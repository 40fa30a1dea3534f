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
	slots, timeout := l.provider.first, a.options.FirstTimeout
	if retry {
		slots, timeout = l.provider.retries, a.options.ConnectTimeout
	}
	if slots.Acquire(ctx, 1) != nil { // nobody wants the outcome any more
		l.dialled <- outcome{kubeconfig: a.kubeconfig, fault: &Fault{Reason: ReasonConnecting}}
		return
	}
	defer slots.Release(1)
	attempting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := outcome{kubeconfig: a.kubeconfig}
	if o.conn, o.fault = a.connect(attempting); o.conn != nil {
		o.version = o.conn.Version()
	}
	l.dialled <- o
}

// probe asks the cluster for its version.
func (l *link) probe(conn *Connection, s subject) {
	ctx, cancel := context.WithTimeout(conn.ctx, l.provider.options.ProbeTimeout)
	defer cancel()
	start := l.provider.options.Clock.Now()
	version, fault := conn.transport.probe(ctx, s)
	observeProbe(l.provider.options.Clock.Since(start), fault)
	l.probed <- outcome{conn: conn, version: version, fault: fault}
}
