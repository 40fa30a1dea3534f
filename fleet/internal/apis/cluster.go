// SPDX-License-Identifier: Apache-2.0

// Package apis knows which APIs a cluster offers. Clusters that offer the same share what is known of it.
package apis

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
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

	// discovering is a lock that a context can give up waiting for. It guards the fields up to tag.
	discovering *semaphore.Weighted
	generation  uint64 // that was wanted when the APIs were discovered last
	discovered  time.Time
	kubernetes  string // the version at that time
	tag         apisTag

	wanted atomic.Uint64
	found  atomic.Pointer[found] // discovered last; nil before
	mapper *mapper
}

// New returns a Cluster that has asked nothing yet. The version is that which a probe saw last.
func New(ctx context.Context, config *rest.Config, base http.RoundTripper, version func() string, clock clock.PassiveClock) *Cluster {
	return &Cluster{ctx: ctx, config: config, base: base, version: version, clock: clock, discovering: semaphore.NewWeighted(1)}
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
	if c.discovering.Acquire(ctx, 1) != nil {
		return Facts{}, fmt.Errorf("waiting for the discovery of APIs: %w", context.Cause(ctx))
	}
	defer c.discovering.Release(1)

	wanted := c.wanted.Load()
	version := c.version()
	known := c.found.Load()
	stale := known == nil || c.generation != wanted || c.kubernetes != version ||
		(len(known.facts.Incomplete) > 0 && c.clock.Since(c.discovered) > incompleteFor)
	if stale {
		var err error
		if known, err = c.discover(ctx, known, version); err != nil {
			return Facts{}, fmt.Errorf("discovering APIs: %w", err)
		}
		if err := c.mapper.renew(); err != nil {
			return Facts{}, fmt.Errorf("making a RESTMapper: %w", err)
		}
		c.found.Store(known)
		c.kubernetes, c.generation, c.discovered = version, wanted, c.clock.Now()
	}
	facts := known.facts
	facts.KubernetesVersion = version
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
