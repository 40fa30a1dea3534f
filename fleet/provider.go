// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Provider keeps a connection to every cluster that its sources report. Its
// methods are safe for concurrent use and none waits for a cluster.
type Provider struct {
	options Options
	// First attempts and retries have slots of their own, so that clusters which keep failing never
	// stand before one that hasn't been tried.
	first, retries *semaphore.Weighted
	claims         *claims
	log            logr.Logger

	mu          sync.RWMutex // never held while calling out
	links       map[multicluster.ClusterName]*link
	ending      map[multicluster.ClusterName]chan struct{} // links that close down
	subscribers []func(multicluster.ClusterName)
	sources     []Source // that are registered
	added       int      // of them, by AddSource
	indexes     []index
	synced      map[string]bool // by source
	root        context.Context //nolint:containedctx // that of Start, whose values all links have; nil before
	stopped     bool            // nothing is launched any more
	running     sync.WaitGroup

	aware multicluster.Aware // set before any link runs
}

// NewProvider returns a Provider that connects to nothing before Start.
func NewProvider(options Options) *Provider {
	options = options.defaulted()
	registerMetrics(options.Metrics)
	return &Provider{
		options: options,
		first:   semaphore.NewWeighted(int64(options.Concurrency)),
		retries: semaphore.NewWeighted(int64(options.Concurrency)),
		claims:  &claims{claimed: map[*link]types.UID{}, used: map[*Connection]*link{}},
		log:     *options.Log,
		links:   map[multicluster.ClusterName]*link{},
		ending:  map[multicluster.ClusterName]chan struct{}{},
		synced:  map[string]bool{},
	}
}

// Start connects to the clusters until the context ends, and returns when every
// connection is closed.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	p.mu.Lock()
	if p.root != nil {
		p.mu.Unlock()
		return errors.New("the fleet provider was started twice")
	}
	p.root, p.aware = ctx, aware
	for _, l := range p.links {
		p.launch(l)
	}
	p.mu.Unlock()

	<-ctx.Done()
	p.mu.Lock() // a launch under way has been counted
	p.stopped = true
	for _, l := range p.links {
		p.stop(l)
	}
	p.mu.Unlock()
	p.running.Wait()
	return nil
}

// Get implements multicluster.Provider. The cluster that it returns is a *Connection, or a Member's own Cluster.
//
// The error is multicluster.ErrClusterNotFound while the cluster isn't connected. A reconciler returns no error then:
// each object of the cluster is reconciled when it is engaged again. [ErrCacheNotSynced] of a read from the returned
// cluster is returned from the reconcile, so that the request is tried again. A [LimitError] lasts until
// Options.Limits or the cluster change, and is for the status of the object. All others are those of client-go.
func (p *Provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if conn := p.published(name).conn; conn != nil {
		return conn.shown(), nil
	}
	return nil, multicluster.ErrClusterNotFound
}

// Connection returns the connection to a cluster, if it is connected now. There is none to a cluster whose Member has
// a Cluster of its own: Get returns that one.
func (p *Provider) Connection(name multicluster.ClusterName) (*Connection, bool) {
	conn := p.published(name).conn
	if conn == nil || conn.kept {
		return nil, false
	}
	return conn, true
}

// State returns what is known about the connection to a cluster.
func (p *Provider) State(name multicluster.ClusterName) State { return p.published(name).state }

// published returns what a link shows of a cluster.
func (p *Provider) published(name multicluster.ClusterName) published {
	if l := p.link(name); l != nil {
		return *l.published.Load()
	}
	return published{state: unknown}
}

// Describe returns what the source reported about a cluster, without its
// credentials.
func (p *Provider) Describe(name multicluster.ClusterName) (Member, bool) {
	l := p.link(name)
	if l == nil {
		return Member{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member
	m.Kubeconfig, m.Config, m.Cluster = nil, nil, nil
	return m, true
}

// link returns what manages a cluster, or nil.
func (p *Provider) link(name multicluster.ClusterName) *link {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.links[name]
}

// Names returns the clusters that the sources report, in no order.
func (p *Provider) Names() []multicluster.ClusterName {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Keys(p.links))
}

// Has reports whether there is a source of a name.
func (p *Provider) Has(source string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return isNamed(p.options.Sources, source) || isNamed(p.sources, source)
}

// Synced reports whether a source has said that it reported all there is. A cluster of it that
// isn't known then is gone.
func (p *Provider) Synced(source string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.synced[source]
}

func (p *Provider) complete(source Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced[source.Name()] = true
	for _, l := range p.links {
		p.launch(l)
	}
}

// Subscribe calls fn whenever the State, the Connection or the description of a cluster has
// changed, and when a cluster is gone. The change is visible by then. fn must not block: it holds
// up the link of that cluster. It may call the Provider.
func (p *Provider) Subscribe(fn func(multicluster.ClusterName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(slices.Clip(p.subscribers), fn)
}

func (p *Provider) notify(name multicluster.ClusterName) {
	p.mu.RLock()
	subscribers := p.subscribers
	p.mu.RUnlock()
	for _, fn := range subscribers {
		fn(name)
	}
}

// take takes what a source reports of a cluster.
func (p *Provider) take(from reporter, m Member) {
	name := NameOf(from.source.Name(), from.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	l, known := p.links[name]
	if known && l.id == m.ID && l.kept == m.Cluster && l.unlimited == m.Unlimited {
		l.set(m)
		return
	}
	if known {
		p.stop(l)
	}
	if p.stopped {
		return
	}
	l = newLink(p, name, from, m)
	p.links[name] = l
	p.launch(l)
}

// withdraw closes the connection to a cluster that a source no longer reports.
func (p *Provider) withdraw(from reporter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, known := p.links[NameOf(from.source.Name(), from.name)]; known {
		p.stop(l)
	}
}

// launch runs a link, unless it runs, or has to wait until the Provider starts or others of its source are known. The
// caller holds the lock.
func (p *Provider) launch(l *link) {
	if p.root == nil || p.stopped || l.cancel != nil || !l.created.IsZero() && !p.synced[l.from.source.Name()] {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.root)) // it ends as soon as it is out of sight
	l.cancel = cancel
	before := p.ending[l.name]
	p.running.Go(func() { l.run(ctx, before) })
}

// stop takes a link out of sight and lets it close down. The caller holds the lock.
func (p *Provider) stop(l *link) {
	delete(p.links, l.name)
	if l.cancel == nil { // never launched
		countPhase(l.published.Load().state.Phase, -1)
		return
	}
	p.ending[l.name] = l.done
	l.cancel()
}

// ended forgets a link that has closed down.
func (p *Provider) ended(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending[l.name] == l.done {
		delete(p.ending, l.name)
	}
}
