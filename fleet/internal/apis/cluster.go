// SPDX-License-Identifier: Apache-2.0

// Package apis knows which APIs a cluster offers. Clusters that offer the same share what is known of it.
package apis

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// incompleteFor is how long facts are kept when a part of the API could not be
// discovered, e.g. because an aggregated API server is down.
const incompleteFor = time.Minute

// Cluster discovers the APIs of one connection, by its config and its transport.
type Cluster struct {
	ctx     context.Context //nolint:containedctx // the lifetime of the connection
	config  *rest.Config
	base    http.RoundTripper
	version func() string
	clock   clock.PassiveClock

	discovering chan struct{} // a lock that a context can give up waiting for; guards facts and tag
	facts       keptFacts
	tag         apisTag
	wanted      atomic.Uint64
	found       atomic.Pointer[found] // discovered last; nil before
	mapper      *mapper
}

// New returns a Cluster that has asked nothing yet. The version is that which a probe saw last.
func New(ctx context.Context, config *rest.Config, base http.RoundTripper, version func() string, clock clock.PassiveClock) *Cluster {
	return &Cluster{ctx: ctx, config: config, base: base, version: version, clock: clock, discovering: make(chan struct{}, 1)}
}

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
	select {
	case c.discovering <- struct{}{}:
	case <-ctx.Done():
		return Facts{}, fmt.Errorf("waiting for the discovery of APIs: %w", context.Cause(ctx))
	}
	defer func() { <-c.discovering }()

	wanted := c.wanted.Load()
	version := c.version()
	f := c.facts
	stale := f.generation != wanted || f.KubernetesVersion != version ||
		(len(f.Incomplete) > 0 && c.clock.Since(f.discovered) > incompleteFor)
	if !stale {
		return f.Facts, nil
	}
	shared, err := c.discover(ctx, version)
	if err != nil {
		return Facts{}, fmt.Errorf("discovering APIs: %w", err)
	}
	if err := c.mapper.renew(); err != nil {
		return Facts{}, fmt.Errorf("making a RESTMapper: %w", err)
	}
	c.found.Store(shared)
	facts := shared.facts
	facts.KubernetesVersion = version
	c.facts = keptFacts{Facts: facts, generation: wanted, discovered: c.clock.Now()}
	return facts, nil
}

// shared returns the APIs that were discovered last. It discovers them if that is yet to be done.
func (c *Cluster) shared() (*found, error) {
	if known := c.found.Load(); known != nil {
		return known, nil
	}
	if _, err := c.Facts(c.ctx); err != nil {
		return nil, err
	}
	return c.found.Load(), nil
}

// Invalidate makes the next Facts discover again, e.g. after a
// CustomResourceDefinition was installed.
func (c *Cluster) Invalidate() { c.wanted.Add(1) }

// keptFacts are facts with the time and generation they belong to.
type keptFacts struct {
	Facts
	generation uint64
	discovered time.Time
}
