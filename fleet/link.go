// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// link manages one cluster: it tells its machine what happens and does what
// the machine decides. All its fields but those marked belong to the goroutine
// of run.
type link struct {
	name      multicluster.ClusterName
	id        string
	kept      cluster.Cluster // of another provider; nil as a rule
	unlimited bool
	created   time.Time // zero unless no other name of its source may have the cluster
	from      reporter
	provider  *Provider
	log       logr.Logger

	mu     sync.Mutex // guards member and fresh
	member Member     // as last reported; its Kubeconfig only until run has read it
	fresh  bool       // run has not read member yet
	// described says that the subscribers aren't told yet of another description.
	described bool
	seen      [sha256.Size]byte

	published atomic.Pointer[published]

	machine    machine
	kubeconfig *kubeconfig.Config // wanted
	inUse      *kubeconfig.Config // that of conn
	conn       *Connection
	engaged    chan struct{} // closed when the last Engage has returned

	cancel     context.CancelFunc // ends run; guarded by the provider
	done       chan struct{}      // closed when run has ended
	changed    chan struct{}
	refused    chan struct{} // a request was answered with 401
	unanswered chan struct{} // a request got no answer
	claimed    chan struct{} // another link has the cluster, or has it no more
	broken     chan breakage
	dialled    chan attemptResult
	probed     chan attemptResult
	cancelDial context.CancelFunc
}

// published is what others see of a link.
type published struct {
	state State
	conn  *Connection
}

// breakage is a connection that could not be put to use.
type breakage struct {
	conn  *Connection
	fault *transport.Fault
}

func newLink(p *Provider, name multicluster.ClusterName, from reporter, m Member) *link {
	l := &link{
		name: name, id: m.ID, kept: m.Cluster, unlimited: m.Unlimited, created: m.Created, from: from, provider: p, log: p.log.WithValues("cluster", name),
		machine: machine{options: p.options, origin: m.Origin, missing: m.empty(), problem: m.Problem},
		engaged: make(chan struct{}),
		done:    make(chan struct{}),
		changed: make(chan struct{}, 1),
		refused: make(chan struct{}, 1), unanswered: make(chan struct{}, 1), claimed: make(chan struct{}, 1),
		broken:  make(chan breakage),
		dialled: make(chan attemptResult, 1),
		probed:  make(chan attemptResult, 1),
	}
	close(l.engaged)
	state := l.machine.state()
	state.Since = p.options.Clock.Now()
	l.published.Store(&published{state: state})
	countPhase(state.Phase, 1)
	l.set(m)
	return l
}

// run works until the context ends. It waits for the link that had the name
// before, so that a cluster is engaged once at a time.
func (l *link) run(ctx context.Context, before <-chan struct{}) {
	defer func() {
		l.end()
		<-l.engaged
		l.provider.ended(l)
		close(l.done)
	}()
	if before != nil {
		<-before
	}
	l.provider.notify(l.name) // that it is known: its first state was made before anybody could see it
	for ctx.Err() == nil {
		again := l.start(ctx)
		l.publish()
		l.step(ctx, again)
	}
}

// step waits for one event and hands it to the machine.
func (l *link) step(ctx context.Context, again time.Time) {
	now := l.provider.options.Clock.Now
	var due <-chan time.Time
	if !again.IsZero() {
		timer := l.provider.options.Clock.NewTimer(again.Sub(now()))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-l.changed:
		l.read(now())
	case o := <-l.dialled:
		l.cancelDial()
		o = l.claim(o)
		if l.machine.dialling == l.machine.wanted { // else nobody wants to know
			countAttempt(o.fault)
		}
		l.adopt(l.machine.dialled(now(), o.version, o.fault), o)
	case o := <-l.probed:
		if o.conn != l.conn {
			l.machine.probing = false
			return
		}
		l.machine.probed(now(), o.version, o.fault)
		if o.fault == nil {
			l.showVersion(o.conn)
		}
	case <-l.refused:
		l.machine.unauthorized()
	case <-l.unanswered:
		l.machine.unanswered()
	case <-l.claimed:
		l.reclaim(now())
	case b := <-l.broken:
		if b.conn == l.conn {
			l.machine.broken(now(), b.fault)
		}
	}
}

// publish shows the state to others, and tells the subscribers if it changed.
func (l *link) publish() {
	old, state := l.published.Load(), l.machine.state()
	if old.state.same(state) && old.conn == l.conn {
		return
	}
	state.Since = old.state.Since
	if old.state.Phase != state.Phase || old.state.Reason != state.Reason {
		state.Since = l.provider.options.Clock.Now()
	}
	l.published.Store(&published{state: state, conn: l.conn})
	countPhase(old.state.Phase, -1)
	countPhase(state.Phase, 1)
	l.provider.notify(l.name)
}

// showVersion shows those who have the connection the version that the machine believes.
func (l *link) showVersion(conn *Connection) {
	version := l.machine.version
	conn.version.Store(&version)
}

// end closes what is open and tells the subscribers that the cluster is gone.
func (l *link) end() {
	if l.machine.dialling != "" {
		l.cancelDial()
		if o := <-l.dialled; o.conn != nil {
			o.conn.close()
		}
	}
	if l.conn != nil {
		l.drop(l.conn)
	}
	l.provider.claims.abandon(l)
	countPhase(l.published.Load().state.Phase, -1)
	l.provider.notify(l.name)
}

// signal wakes whoever listens, once for any number of signals.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
