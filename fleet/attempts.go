// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// attemptResult is how an attempt or a probe ended.
type attemptResult struct {
	kubeconfig *kubeconfig.Config
	conn       *Connection
	version    string
	fault      *transport.Fault
}

// start does what the machine plans, and returns when to ask again.
func (l *link) start(ctx context.Context) time.Time {
	p := l.machine.plan(l.provider.options.Clock.Now())
	if p.cancelDial {
		l.cancelDial()
	}
	if p.disconnect {
		l.closeConnection()
	}
	if p.redial {
		l.conn.transport.Close()
	}
	if p.refresh {
		l.from.source.Refresh(l.from.name)
	}
	if p.dial {
		var attempting context.Context
		attempting, l.cancelDial = context.WithCancel(ctx)
		options := l.provider.options
		if l.unlimited {
			options.Limits, options.Memory = limits.None, nil
		}
		refused, unanswered := l.refused, l.unanswered // not l: timers of HTTP/2 hold the transport for a while after its end
		go l.attempt(attempting, p.retry, attempt{
			root: ctx, kubeconfig: l.kubeconfig, kept: l.kept, subject: l.about(l.kubeconfig), tenant: tenantOf(l.from), options: options,
			onUnauthorized: func() { signal(refused) }, onUnanswered: func() { signal(unanswered) }, log: l.log,
		})
	}
	if p.probe {
		go l.check(l.conn, l.about(l.inUse))
	}
	return p.again
}

func (l *link) about(k *kubeconfig.Config) transport.Subject {
	return transport.Subject{Host: k.Host(), Origin: l.machine.origin}
}

// attempt makes one attempt. Its deadline starts when it has a slot.
func (l *link) attempt(ctx context.Context, retry bool, a attempt) {
	slots, timeout := l.provider.first, a.options.FirstTimeout
	if retry {
		slots, timeout = l.provider.retries, a.options.ConnectTimeout
	}
	if slots.Acquire(ctx, 1) != nil { // nobody wants the connection any more
		l.dialled <- attemptResult{kubeconfig: a.kubeconfig, fault: &transport.Fault{Reason: ReasonConnecting}}
		return
	}
	defer slots.Release(1)
	attempting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := attemptResult{kubeconfig: a.kubeconfig}
	if o.conn, o.fault = a.connect(attempting); o.conn != nil {
		o.version = o.conn.Version()
	}
	l.dialled <- o
}

// check asks the cluster for its version.
func (l *link) check(conn *Connection, s transport.Subject) {
	ctx, cancel := context.WithTimeout(conn.ctx, l.provider.options.ProbeTimeout)
	defer cancel()
	start := l.provider.options.Clock.Now()
	version, fault := conn.transport.Probe(ctx, s)
	observeProbe(l.provider.options.Clock.Since(start), fault)
	l.probed <- attemptResult{conn: conn, version: version, fault: fault}
}

// tenantOf returns for whom the answers of a source's cluster count: "namespace/name" is one of a namespace.
func tenantOf(from reporter) budget.Tenant {
	namespace, name, found := strings.Cut(from.name.String(), "/")
	if !found {
		namespace, name = "", namespace
	}
	return budget.Tenant{Namespace: namespace, Cluster: NameOf(from.source.Name(), multicluster.ClusterName(name)).String()}
}
