// SPDX-License-Identifier: Apache-2.0

// Package registration keeps the ProviderInstance of a running instance, and lets its
// controllers run only while that object holds the instance's scope.
//
// A round checks what the instance needs (access.go), takes its object, and
// claims the scope (object.go), which the shared deployment grants. Rounds follow one another until a
// heartbeat's answer shows the grant. Then the controllers run beside a heartbeat (running.go). When they have ended, the instance deletes
// the object (heartbeat.go).
//
// A silent instance loses its grant when it has expired. So the process ends when it couldn't
// write for two thirds of that time, counted from before it sent its last successful heartbeat:
// see package lifetime, and docs/design/instances.md.
package registration

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/registration/lifetime"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Bounds of Options.Heartbeat, and its default: spec.expirySeconds is four times as long. With the
// default a process outlives half a minute in which it can't write.
const (
	MinHeartbeat     = time.Second
	DefaultHeartbeat = 20 * time.Second
	MaxHeartbeat     = 75 * time.Second
)

const (
	// requestTimeout is longer than that of any admission webhook.
	requestTimeout = 15 * time.Second
	// defaultCompare is Options.Compare.
	defaultCompare = 10 * time.Minute
	// soon is after how long the first failed round is followed by another.
	soon = time.Second
	// answerInterval is the time between two looks for the answer to a claim, answerLooks their number in a round.
	answerInterval = 100 * time.Millisecond
	answerLooks    = 20
)

// Options of New.
type Options struct {
	Scope instance.Scope
	// Namespace and Name of the ProviderInstance.
	Namespace, Name string
	// LeaderElection says whether a leader is elected, and LeaseName by which Lease
	// of Namespace; it is "" if that Lease is elsewhere.
	LeaderElection bool
	LeaseName      string
	Version        string
	// Heartbeat is the time between two, from MinHeartbeat to MaxHeartbeat.
	Heartbeat time.Duration

	// Drain says that the instance is to end.
	Drain bool
	// Sandbox is status.sandbox.
	Sandbox addonsv1.InstanceSandbox

	// Compare is how often a running instance looks whether the CRDs have become newer than the program. Defaults to
	// 10 minutes.
	Compare time.Duration

	// Reads are what the controllers list and watch in each namespace.
	Reads []schema.GroupResource
	// Controllers runs them, until the context ends.
	Controllers func(context.Context) error
	// Die ends the process at once, without waiting for anything: another instance
	// may be about to take over. Only tests let it return.
	Die func(error)

	// Clock is injected by tests. Defaults to the real one.
	Clock clock.Clock
}

// Registration is a runnable of the manager, on the leader if one is elected.
type Registration struct {
	o        Options
	holder   string
	client   client.Client // without cache and rate limit
	clusters client.Reader // cached
	recorder events.EventRecorder
	elected  <-chan struct{} // nil without leader election

	// The fields below are used by one goroutine at a time.
	object   *addonsv1.ProviderInstance // ours, as last seen
	life     lifetime.Lifetime
	access   access
	result   roundResult
	compared time.Time // with the CRDs
	reported string    // the reasons that were last logged
	warned   bool      // an event said that the instance waits

	problem atomic.Value // string: why this isn't ready, "" if it is
	standby atomic.Value // string: why this isn't ready to lead, "" if it is
}

var _ manager.LeaderElectionRunnable = &Registration{}

// OwnConnection returns a configuration whose requests wait for no others: neither for a rate
// limit, nor behind them on one connection. An instance lives by its heartbeats and its lease.
func OwnConnection(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.QPS = -1
	if own.Dial == nil {
		own.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext // client-go shares connections of equal configurations
	}
	return own
}

const dialTimeout = 30 * time.Second // that of client-go

// New returns the registration of this process. Its requests don't wait behind those of controllers.
func New(mgr manager.Manager, o Options) (*Registration, error) {
	config := OwnConnection(mgr.GetConfig())
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the registration: %w", err)
	}
	direct, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: connection})
	if err != nil {
		return nil, fmt.Errorf("making the client of the registration: %w", err)
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("making the client of the registration: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Compare = cmp.Or(o.Compare, defaultCompare)
	o.Scope = o.Scope.Canonical()
	r := &Registration{
		o:        o,
		holder:   newHolder(),
		client:   direct,
		clusters: mgr.GetCache(),
		recorder: mgr.GetEventRecorder("providerinstance"),
		access: access{
			client: direct, rest: server.RESTClient(), namespaces: o.Scope.Namespaces, reads: o.Reads, granted: map[right]bool{},
		},
	}
	r.problem.Store("it is starting")
	r.standby.Store("it is starting")
	r.life = lifetime.Lifetime{Clock: o.Clock, Heartbeat: o.Heartbeat}
	if o.LeaderElection {
		r.elected = mgr.Elected()
	}
	return r, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Registration) NeedLeaderElection() bool { return true }

// Start claims the scope, and runs the controllers while the instance holds it.
func (r *Registration) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("registration").WithValues("providerInstance", r.key().String(), "scope", r.o.Scope.Describe())
	ctx = logf.IntoContext(ctx, log)
	if !r.await(ctx) {
		r.leave(ctx)
		return nil
	}
	return r.run(ctx)
}

// await makes rounds until the instance holds its scope, false if the context ended first.
func (r *Registration) await(ctx context.Context) bool {
	for failed := 0; ; failed++ {
		before := r.result.reasons()
		held := r.round(ctx)
		if ctx.Err() != nil {
			return false
		}
		r.report(ctx)
		if held {
			return true
		}
		if r.result.reasons() != before {
			failed = 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-r.o.Clock.After(backoff(r.o.Heartbeat, failed)):
		}
	}
}

// backoff returns the time between two rounds: short while that may help, in the end a heartbeat.
func backoff(heartbeat time.Duration, failed int) time.Duration {
	return wait.Jitter(retry.Times{First: soon, Longest: heartbeat}.After(failed)*3/4, 0.5)
}

// round goes one way through all that leads to a grant.
func (r *Registration) round(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	if r.result.api, r.result.obstacle = r.access.compatible(ctx); r.result.obstacle != nil {
		return false
	}
	r.compared = r.o.Clock.Now()
	r.result.namespaces = r.access.accessible(ctx)
	if r.result.obstacle = r.take(ctx); r.result.obstacle != nil {
		return false
	}
	r.result.scope = claiming{r}.claim(ctx)
	if r.object.Spec.Holder != r.holder {
		r.result.obstacle = &obstacle{reason: r.result.scope.Reason, message: r.result.scope.Message}
		return false
	}
	if err := r.beat(ctx, nil); err != nil {
		r.result.obstacle = &obstacle{reason: "StatusNotWritten", message: err.Error()}
		return false
	}
	return firstProblem(r.result.parts()...) == nil && r.life.Left() > 0
}
