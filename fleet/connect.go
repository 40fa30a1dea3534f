// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/apis"
	"github.com/cluster-chandler/chandler/fleet/internal/lazycache"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
	"github.com/cluster-chandler/chandler/fleet/secretwriter"
)

// attempt is all that is needed to connect once.
type attempt struct {
	// root ends with the provider; a connection outlives its attempt.
	root           context.Context //nolint:containedctx // the parent of the connection's lifetime
	kubeconfig     *kubeconfig.Config
	kept           cluster.Cluster // of another provider; nil as a rule
	subject        transport.Subject
	tenant         budget.Tenant
	options        Options
	onUnauthorized func()
	onUnanswered   func()
	log            logr.Logger
}

// connect returns a connection to a cluster that has answered a probe, or why
// there is none. Its cache is not started. The context bounds the attempt only.
func (a attempt) connect(ctx context.Context) (*Connection, *transport.Fault) {
	o := a.options
	t, err := transport.New(o.transport(a.kubeconfig, a.tenant, a.onUnauthorized, a.onUnanswered))
	if err != nil {
		return nil, a.unusable(err)
	}
	version, fault := t.Probe(ctx, a.subject)
	if fault != nil {
		t.Shut()
		return nil, fault
	}
	c := &Connection{transport: t, kept: a.kept != nil}
	// Two clusters of another provider may well be one server.
	if o.Identify && !c.kept {
		if c.uid, fault = t.Identify(ctx, a.subject); fault != nil {
			t.Shut()
			return nil, fault
		}
	}
	c.ctx, c.cancel = context.WithCancel(a.root)
	c.version.Store(&version)
	if c.kept {
		c.Cluster = a.kept
		return c, nil
	}
	if err := c.build(o, a.log); err != nil {
		c.close()
		return nil, a.unusable(err)
	}
	return c, nil
}

// transport returns the options of a transport.
func (o Options) transport(k *kubeconfig.Config, tenant budget.Tenant, onUnauthorized, onUnanswered func()) transport.Options {
	return transport.Options{
		Kubeconfig: k, UserAgent: o.UserAgent, AllowLoopback: o.AllowLoopback,
		ConnectTimeout: o.ConnectTimeout, HeaderTimeout: o.HeaderTimeout, ListTimeout: o.ListTimeout, Timeout: o.Timeout,
		Limits: o.Limits, Memory: o.Memory, Tenant: tenant, Clock: o.Clock, Unauthorized: onUnauthorized, Unanswered: onUnanswered,
	}
}

// clients returns the config of clients on a transport.
func (o Options) clients(t *transport.Transport) *rest.Config {
	return &rest.Config{
		Host: t.Server().String(), Transport: t, UserAgent: o.UserAgent, Timeout: o.Timeout, QPS: o.QPS, Burst: o.Burst,
		// They would be logged, and policies may quote what is in an object.
		WarningHandler: rest.NoWarnings{},
	}
}

// ConfigFor returns the config of clients for one server, for a program that doesn't stay. They have the limits and timeouts of a
// Connection. Nothing probes the server.
func ConfigFor(k *kubeconfig.Config, o Options) (*rest.Config, error) {
	o = o.defaulted()
	nobody := func() {}
	t, err := transport.New(o.transport(k, budget.Tenant{}, nobody, nobody))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", k.Host(), err)
	}
	return o.clients(t), nil
}

// unusable reports a kubeconfig that passed the checks and can't be used. The
// cause goes to the log only: client-go words it.
func (a attempt) unusable(err error) *transport.Fault {
	a.log.Error(err, "Could not make the clients of a cluster")
	return a.subject.Fault(ReasonConnectionFailed, "can't be connected to with the kubeconfig in %s", a.subject.Origin)
}

// build makes the clients. It sends no request.
func (c *Connection) build(o Options, log logr.Logger) error {
	config := o.clients(c.transport)
	config.RateLimiter = transport.Waiter{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst), Under: c.ctx}
	c.config = config
	c.apis = apis.New(c.ctx, config, c.transport, c.Version)
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
	// The caller's come first: a Connection needs its own scheme, mapper and cache.
	if c.Cluster, err = cluster.New(config, append(o.Cluster[:len(o.Cluster):len(o.Cluster)], c.clusterOptions(o, log))...); err != nil {
		return fmt.Errorf("making the cluster: %w", err)
	}
	if c.secrets, err = secretwriter.New(config, c.GetHTTPClient()); err != nil {
		return err
	}
	c.direct, err = c.As("")
	return err
}

// clusterOptions returns what makes a cluster's cache and client use our connections, and has nobody
// wait for a cache but its readers.
func (c *Connection) clusterOptions(o Options, log logr.Logger) cluster.Option {
	return func(made *cluster.Options) {
		made.Scheme, made.Logger, made.MapperProvider, made.HTTPClient = o.Scheme, log, c.apis.NewMapper, nil
		made.Client.HTTPClient, made.Client.Mapper, made.Cache.Mapper = nil, nil, nil
		if made.Client.Cache != nil { // cluster.New writes to it, and it may be the same for all clusters
			made.Client.Cache = ptr.To(*made.Client.Cache)
		}
		newCache := made.NewCache
		if newCache == nil {
			newCache = cache.New
		}
		made.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			options.HTTPClient = c.watches
			return lazycache.New(config, options, newCache, sync.OnceFunc(func() { c.startCache() }))
		}
		newClient := made.NewClient
		if newClient == nil {
			newClient = client.New
		}
		made.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
			if o.DirectReads {
				options.Cache = nil
			}
			return newClient(config, options)
		}
	}
}

// swappable reports whether a kubeconfig differs from another in what can be
// replaced below a running connection.
func swappable(old, wanted *kubeconfig.Config) bool {
	return old.Endpoint == wanted.Endpoint && old.Trusted == nil && wanted.Trusted == nil
}
