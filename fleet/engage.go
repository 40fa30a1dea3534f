// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

// adopt puts a new connection to use, or swaps its credentials into the one in
// use, or drops it when the machine doesn't want it any more.
func (l *link) adopt(wanted bool, o attemptResult) {
	switch {
	case o.conn == nil:
	case !wanted:
		l.drop(o.conn)
	case l.conn != nil && swappable(l.inUse, o.kubeconfig):
		l.drop(o.conn)
		l.conn.transport.Swap(&o.kubeconfig.Credentials)
		l.showVersion(l.conn)
		if l.inUse.Digest() != o.kubeconfig.Digest() {
			l.log.Info("Rotated the credentials of a cluster")
		}
		l.inUse = o.kubeconfig
	default:
		old := l.conn
		l.conn, l.inUse = o.conn, o.kubeconfig
		l.machine.replaced(o.version)
		l.log.Info("Connected to a cluster", "version", o.version)
		o.conn.replace = func(fault *transport.Fault) { l.giveUp(o.conn, fault) }
		o.conn.startCache = func() {
			go func() { l.report(o.conn, o.conn.Start(o.conn.ctx)) }()
		}
		l.publish() // before Engage, which may look the connection up
		if old != nil {
			l.drop(old)
		}
		l.engage(o.conn)
	}
}

// engage hands the cluster to the manager. It doesn't wait: a component that is slow to
// engage holds up its own cluster only.
func (l *link) engage(conn *Connection) {
	before, engaged := l.engaged, make(chan struct{})
	l.engaged = engaged
	go func() {
		defer close(engaged)
		<-before
		if conn.ctx.Err() != nil {
			return
		}
		err := conn.index(conn.ctx, l.provider.known()...)
		if err == nil {
			err = l.provider.aware.Engage(conn.ctx, l.name, conn.shown())
		}
		if err != nil {
			l.report(conn, err)
		}
	}()
}

// report tells run that a connection is of no use. The cause goes to the log:
// it may change from one time to the next.
func (l *link) report(conn *Connection, err error) {
	if conn.ctx.Err() != nil {
		return
	}
	l.log.Error(err, "Could not use the connection to a cluster")
	l.giveUp(conn, &transport.Fault{
		Reason:  ReasonEngageFailed,
		Message: "The cluster answers, but a controller or the cache could not start on it; see the log of the manager",
	})
}

// giveUp tells run to connect again.
func (l *link) giveUp(conn *Connection, fault *transport.Fault) {
	select {
	case l.broken <- breakage{conn, fault}:
	case <-conn.ctx.Done():
	}
}

// closeConnection takes the connection out of sight before it closes it.
func (l *link) closeConnection() {
	if l.conn == nil {
		return
	}
	conn := l.conn
	l.conn, l.inUse = nil, nil
	l.publish()
	l.drop(conn)
	l.log.Info("Disconnected from a cluster")
}

// drop closes a connection. Once its last Engage has returned, another name may have the cluster.
func (l *link) drop(conn *Connection) {
	conn.close()
	engaged := l.engaged
	go func() {
		<-engaged
		l.provider.claims.release(conn)
	}()
}
