// SPDX-License-Identifier: Apache-2.0

// Package apis knows which APIs a cluster offers. Clusters that offer the same share what is known of it.
package apis

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

// incompleteFor is how long facts are kept when a part of the API could not be
// discovered, e.g. because an aggregated API server is down.
const incompleteFor = time.Minute

// Cluster discovers the APIs of one connection, by its config and its transport.
type Cluster struct {
	ctx       context.Context //nolint:containedctx // the lifetime of the connection
	config    *rest.Config
	transport *transport.Transport
	version   func() string

	// discovering is a lock that a context can give up waiting for. It guards the fields up to tag.
	discovering *semaphore.Weighted
	generation  uint64 // that was wanted when the APIs were discovered last
	discovered  time.Time
	kubernetes  string // the version at that time
	tag         apisTag

	wanted atomic.Uint64
	found  atomic.Pointer[found]   // discovered last; nil before
	failed atomic.Pointer[failure] // of the last discovery; nil if there is none
	mapper *mapper
}

// New returns a Cluster that has asked nothing yet. The version is that which a probe saw last. What is found is dropped with the
// connection, though others may hold on to that.
func New(ctx context.Context, config *rest.Config, t *transport.Transport, version func() string) *Cluster {
	c := &Cluster{ctx: ctx, config: config, transport: t, version: version, discovering: semaphore.NewWeighted(1)}
	context.AfterFunc(ctx, func() { c.found.Store(nil) })
	return c
}

// failure is that of a discovery.
type failure struct {
	err error
	at  time.Time
}

// failedFor is how long a RESTMapper, which has no context, doesn't try again what failed for a caller that has one.
const failedFor = time.Second

// Facts are what a cluster offers, as the library shows them.
type Facts struct {
	KubernetesVersion string
	APIVersions       []string
	Incomplete        []string
}

// Facts returns what the cluster offers. The version is kept fresh by the
// probe; the APIs are discovered once, and again after Invalidate or a
// change of the version. Callers that ask at the same time share one
// discovery. The slices are shared: don't change them.
func (c *Cluster) Facts(ctx context.Context) (Facts, error) {
	known, err := c.current(ctx)
	if err != nil {
		return Facts{}, err
	}
	facts := known.facts
	facts.KubernetesVersion = c.version()
	return facts, nil
}

// current returns the APIs as they are now, as far as that can be told without asking each time.
func (c *Cluster) current(ctx context.Context) (*found, error) {
	if c.discovering.Acquire(ctx, 1) != nil {
		return nil, fmt.Errorf("waiting for the discovery of APIs: %w", context.Cause(ctx))
	}
	defer c.discovering.Release(1)

	wanted := c.wanted.Load()
	version := c.version()
	known := c.found.Load()
	fresh := known != nil && c.generation == wanted && c.kubernetes == version &&
		(len(known.facts.Incomplete) == 0 || c.transport.Clock.Since(c.discovered) <= incompleteFor)
	if fresh {
		return known, nil
	}
	known, err := c.discover(ctx, known, version)
	if err != nil {
		if ctx.Err() == nil { // else it is the caller's
			c.failed.Store(&failure{err, c.transport.Clock.Now()})
		}
		return nil, fmt.Errorf("discovering APIs: %w", err)
	}
	if err := c.mapper.renew(); err != nil {
		return nil, fmt.Errorf("making a RESTMapper: %w", err)
	}
	c.found.Store(known)
	c.failed.Store(nil)
	c.kubernetes, c.generation, c.discovered = version, wanted, c.transport.Clock.Now()
	return known, nil
}

// last returns the APIs that were discovered last. It discovers them if that is yet to be done.
func (c *Cluster) last() (*found, error) {
	if known := c.found.Load(); known != nil {
		return known, nil
	}
	if failed := c.failed.Load(); failed != nil && c.transport.Clock.Since(failed.at) < failedFor {
		return nil, fmt.Errorf("discovering APIs: %w", failed.err)
	}
	return c.current(c.ctx)
}

// Discover discovers the APIs if that is yet to be done. Unlike a RESTMapper's caller, one that waits for memory here can give up.
func (c *Cluster) Discover(ctx context.Context) error {
	if c.found.Load() != nil {
		return nil
	}
	_, err := c.current(ctx)
	return err
}

// Invalidate makes the next Facts discover again, e.g. after a
// CustomResourceDefinition was installed.
func (c *Cluster) Invalidate() { c.wanted.Add(1) }
