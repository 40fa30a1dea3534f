// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// Connection is one reachable workload cluster. It is made new each time a
// cluster is connected, and is of no more use once Done is closed. All its
// clients share one rate limit and one identity, which follows a rotation of
// the credentials.
//
// GetConfig holds no credentials: its Transport adds them. So copies of it work
// for further clients, and follow a rotation, too.
type Connection struct {
	cluster.Cluster

	transport *transport
	uid       types.UID // of the cluster, where several sources may name it
	direct    client.Client
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	watches   *http.Client
	clock     clock.PassiveClock
	version   atomic.Pointer[string]

	ctx    context.Context //nolint:containedctx // it is the lifetime of the connection
	cancel context.CancelFunc
	// Set before others see the connection: giveUp has it replaced, startCache runs its cache.
	giveUp     func(*Fault)
	startCache func()

	config      *rest.Config  // of requests that aren't watches
	discovering chan struct{} // a lock that a context can give up waiting for; guards facts
	facts       keptFacts
	apisTag     apisTag // guarded by discovering
	factsWanted atomic.Uint64
	apis        atomic.Pointer[apis] // discovered last; nil before
	mapper      *mapper
}

// Client reads and writes directly, without a cache. Kinds that appear later
// are discovered when they are first asked for.
func (c *Connection) Client() client.Client { return c.direct }

// Dynamic is for lists and watches: it has no timeout of its own, so the
// context of each call must end. Connections that fall silent are closed, and
// so are all when the cluster is disconnected.
func (c *Connection) Dynamic() dynamic.Interface { return c.dynamic }

// Metadata is for lists and watches of metadata alone, with the same care.
func (c *Connection) Metadata() metadata.Interface { return c.metadata }

// As returns a client that acts as a user, such as "system:serviceaccount:namespace:name", whose
// groups the API server knows. Otherwise it is as [Connection.Client]: it shares the transport,
// the limits and the knowledge of kinds, and ends with the connection. As sends no request: that
// the kubeconfig's user may not impersonate is the answer to the first one.
func (c *Connection) As(user string) (client.Client, error) {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	made, err := client.New(config, client.Options{Scheme: c.GetScheme(), Mapper: c.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client of user %q: %w", user, err)
	}
	return made, nil
}

// Version is the last seen Kubernetes version, e.g. "v1.36.3".
func (c *Connection) Version() string { return *c.version.Load() }

// Done is closed when the cluster is disconnected.
func (c *Connection) Done() <-chan struct{} { return c.ctx.Done() }

// Context ends with the connection. Watches hang on it.
func (c *Connection) Context() context.Context { return c.ctx }

// Restored gives the connection up for a new one, because the cluster shows a former state: no
// watch or cache of before holds any more. It blocks until that is known, or the connection ends.
func (c *Connection) Restored() {
	c.giveUp(&Fault{Reason: ReasonClusterRestored, Message: "The cluster is in a former state, as after a restore from a backup. Connecting anew, to look at all of it"})
}

// attempt is all that is needed to connect once.
type attempt struct {
	// root ends with the provider; a connection outlives its attempt.
	root         context.Context //nolint:containedctx // the parent of the connection's lifetime
	kubeconfig   *kubeconfig.Config
	subject      subject
	options      Options
	unauthorized func()
	unanswered   func()
	log          logr.Logger
}

// connect returns a connection to a cluster that has answered a probe, or why
// there is none. Its cache is not started. The context bounds the attempt only.
func (a attempt) connect(ctx context.Context) (*Connection, *Fault) {
	t, err := newTransport(a)
	if err != nil {
		return nil, a.unusable(err)
	}
	version, fault := t.probe(ctx, a.subject)
	if fault != nil {
		t.shut()
		return nil, fault
	}
	var uid types.UID
	if len(a.options.Sources) > 1 {
		if uid, fault = t.identify(ctx, a.subject); fault != nil {
			t.shut()
			return nil, fault
		}
	}
	c := &Connection{
		transport: t, uid: uid, clock: a.options.Clock, discovering: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancel(a.root)
	c.version.Store(&version)
	if err := c.build(a.kubeconfig, a.options, a.log); err != nil {
		c.close()
		return nil, a.unusable(err)
	}
	return c, nil
}

// unusable reports a kubeconfig that passed the checks and can't be used. The
// cause goes to the log only: client-go words it.
func (a attempt) unusable(err error) *Fault {
	a.log.Error(err, "Could not make the clients of a cluster")
	return a.subject.fault(ReasonConnectionFailed, "can't be connected to with the kubeconfig in %s", a.subject.origin)
}

// build makes the clients. It sends no request.
func (c *Connection) build(k *kubeconfig.Config, o Options, log logr.Logger) error {
	config := &rest.Config{
		Host: k.Endpoint.Server, Transport: c.transport, UserAgent: o.UserAgent, Timeout: o.Timeout,
		QPS: o.QPS, Burst: o.Burst,
		RateLimiter: waiter{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst), ctx: c.ctx},
		// They would be logged, and policies may quote what is in an object.
		WarningHandler: rest.NoWarnings{},
	}
	c.config = config
	watchConfig := rest.CopyConfig(config)
	watchConfig.Timeout = 0

	var err error
	if c.watches, err = rest.HTTPClientFor(watchConfig); err != nil {
		return fmt.Errorf("making the HTTP client for watches: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(watchConfig, c.watches); err != nil {
		return fmt.Errorf("making the dynamic client: %w", err)
	}
	if c.metadata, err = metadata.NewForConfigAndClient(watchConfig, c.watches); err != nil {
		return fmt.Errorf("making the metadata client: %w", err)
	}
	if c.Cluster, err = cluster.New(config, c.clusterOptions(o, log)); err != nil {
		return fmt.Errorf("making the cluster: %w", err)
	}
	c.direct, err = c.As("")
	return err
}

// clusterOptions returns what makes a cluster's cache and client use our connections, and has nobody
// wait for a cache but its readers.
func (c *Connection) clusterOptions(o Options, log logr.Logger) cluster.Option {
	return func(made *cluster.Options) {
		made.Scheme, made.Logger, made.MapperProvider = o.Scheme, log, c.newMapper
		made.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			options.HTTPClient = c.watches
			of, err := cache.New(config, options)
			return patientCache{Cache: of, wanted: sync.OnceFunc(func() { c.startCache() })}, err
		}
		made.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
			if o.DirectReads {
				options.Cache = nil
			}
			return client.New(config, options)
		}
	}
}

// swappable reports whether a kubeconfig differs from another in what can be
// replaced below a running connection.
func swappable(old, wanted *kubeconfig.Config) bool {
	return old.Endpoint == wanted.Endpoint && old.Trusted == nil && wanted.Trusted == nil
}

// swap replaces the credentials. Watches go on with a new token; a TLS
// connection keeps its client certificate, so with a new one the connections
// are opened anew, and watches resume where they were.
func (c *Connection) swap(k *kubeconfig.Config) {
	old := c.transport.credentials.Swap(&k.Credentials)
	if old.Cert != k.Credentials.Cert || old.Key != k.Credentials.Key {
		c.transport.close()
	}
}

// close ends the connection and everything that runs on it.
func (c *Connection) close() {
	c.cancel()
	c.transport.shut()
}
