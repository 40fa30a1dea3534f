// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
