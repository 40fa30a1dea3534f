// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// adopt puts a new connection to use, or swaps its credentials into the one in
// use, or drops it when the machine doesn't want it any more.
func (l *link) adopt(orders orders, o outcome) {
	l.do(orders)
	switch {
	case o.conn == nil:
	case !orders.adopt:
		o.conn.close()
	case l.conn != nil && swappable(l.inUse, o.kubeconfig):
		o.conn.close()
		l.conn.swap(o.kubeconfig)
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
		l.putToUse(o.conn)
		l.publish() // before Engage, which may look the connection up
		if old != nil {
			old.close()
		}
		l.engage(o.conn)
	}
}

// putToUse connects a connection with the link.
func (l *link) putToUse(conn *Connection) {
	conn.giveUp = func(fault *Fault) { l.giveUp(conn, fault) }
	conn.startCache = func() {
		go func() { l.report(conn, conn.Start(conn.ctx)) }()
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
		err := conn.index(conn.ctx, l.provider.known())
		if err == nil {
			err = l.provider.aware.Engage(conn.ctx, l.name, conn)
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
	l.giveUp(conn, &Fault{
		Reason:  ReasonEngageFailed,
		Message: "The cluster answers, but a controller or the cache could not start on it; see the log of the manager",
	})
}

// giveUp tells run to connect anew.
func (l *link) giveUp(conn *Connection, fault *Fault) {
	select {
	case l.broken <- breakage{conn, fault}:
	case <-conn.ctx.Done():
	}
}

// disconnect takes the connection out of sight before it closes it.
func (l *link) disconnect() {
	if l.conn == nil {
		return
	}
	conn := l.conn
	l.conn, l.inUse = nil, nil
	l.publish()
	conn.close()
	l.log.Info("Disconnected from a cluster")
}

// index is one that all clusters have, those of now and those that come.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

// IndexField implements multicluster.Provider. Like that of a controller-runtime cache, it is
// meant to be called before an informer for the kind runs: set indexes up before the manager starts.
func (p *Provider) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	i := index{object, field, extract}
	p.mu.Lock()
	p.indexes = append(p.indexes, i)
	var connected []*Connection
	for _, l := range p.links {
		if conn := l.published.Load().conn; conn != nil {
			connected = append(connected, conn)
		}
	}
	p.mu.Unlock()
	var failed []error
	for _, conn := range connected {
		failed = append(failed, conn.index(ctx, []index{i}))
	}
	return errors.Join(failed...)
}

// known returns the indexes that a new connection gets.
func (p *Provider) known() []index {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.indexes
}

// index adds indexes to the cache of a cluster. It has to know the scope of each kind, and so may ask the server.
func (c *Connection) index(ctx context.Context, all []index) error {
	for _, i := range all {
		if err := c.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}
