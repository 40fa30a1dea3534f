// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// Options of a Provider. A zero field means its default.
type Options struct {
	// Concurrency is the number of parallel first attempts, and again of
	// parallel retries. Dead clusters wait among the retries, where they can't
	// hold up a new cluster. Defaults to 32.
	Concurrency int

	// ConnectTimeout is the deadline of one attempt, from name resolution to
	// the answer. Defaults to 10s.
	ConnectTimeout time.Duration
	// FirstTimeout is the deadline of the first attempt with a kubeconfig. It
	// is shorter, so that a fleet with many dead clusters is sorted quickly: a
	// slow cluster gets ConnectTimeout in its retry. Defaults to 3s, and is
	// never more than ConnectTimeout.
	FirstTimeout time.Duration
	// RetryMin and RetryMax bound the time between failed attempts, which
	// doubles each time; up to half of it is taken off at random. A changed
	// kubeconfig is tried at once. Default to 1s and 60s.
	RetryMin, RetryMax time.Duration

	// ProbeInterval is the time from the start of one probe to the next. After one that failed,
	// and after a request that got no answer, it is ProbeRetry, which is never more.
	// ProbeTimeout is the deadline of one. After ProbeFailures in a row the connection is given
	// up. Default to 60s, 5s, 5s and 5: between probes, HTTP/2 pings and watches notice a lost
	// connection.
	ProbeInterval, ProbeRetry, ProbeTimeout time.Duration
	ProbeFailures                           int

	// QPS and Burst limit the requests to one cluster: all its clients share
	// one limit, probes are exempt. Default to 20 and 30.
	QPS   float32
	Burst int
	// Timeout is the deadline of one request that isn't a watch. The server is
	// told four fifths of it. The API server waits 10s for a webhook that sets no
	// time of its own. So it has the time to answer that the webhook didn't
	// answer. Defaults to 15s.
	Timeout time.Duration
	// HeaderTimeout is how long an answer may take to begin. ListTimeout is the deadline
	// of a list for a watch, which Timeout doesn't bound. Default to 30s and 2m.
	HeaderTimeout, ListTimeout time.Duration
	// UserAgent is sent with every request. Defaults to that of client-go, which names the program.
	UserAgent string

	// AllowInsecureTLS accepts kubeconfigs that skip the check of the server
	// certificate, or that name an http:// server.
	AllowInsecureTLS bool
	// AllowLoopback accepts servers on this host. It is for tests and local
	// control planes: in a pod, loopback is the pod itself.
	AllowLoopback bool

	// Limits are how much a cluster may answer. Defaults to the limits of package limits. None hold for a
	// Member that is Unlimited.
	Limits limits.Limits
	// Memory is where the answers of clusters count. A cluster is the tenant of its own answers. Nil counts nothing.
	Memory *budget.Budget
	// Proxies are those that a kubeconfig may name as its proxy-url, e.g. http://bastion:3128, by scheme,
	// host and port. A proxy resolves the host of the server by itself, so the addresses that are
	// refused are refused as literals alone. Empty means none.
	Proxies []*url.URL

	// Identify has the UID of each cluster's namespace kube-system read when it is connected, for
	// Connection.UID and to find two names of one cluster. It is always read if there are several Sources.
	// [Provider.AddSource] needs it.
	Identify bool

	// DirectReads has GetClient read from the server. Otherwise it reads from the cluster's
	// cache, as usual with controller-runtime.
	DirectReads bool
	// Scheme of the typed clients. Defaults to that of client-go.
	Scheme *runtime.Scheme
	// Cluster are applied to the cluster.Cluster of each Connection, before our own options. Here a cache gets its
	// ByObject, DefaultNamespaces or DefaultTransform, and the client its DisableFor. The scheme, logger, RESTMapper
	// and HTTP clients of a Connection replace those that an option sets.
	Cluster []cluster.Option

	// Sources discover the clusters. Where two name the same cluster, the first has it.
	Sources []Source

	// Metrics is where the metrics fleet_* are registered. They count for all Providers of the process. Defaults to
	// controller-runtime's registry, which the manager serves.
	Metrics prometheus.Registerer
	// Log is for what the fleet says of its clusters. Defaults to controller-runtime's logger, with the name fleet.
	Log *logr.Logger

	// Clock is injected by tests.
	Clock clock.WithTicker
	// Random returns a number in [0,1) for jitter; injected by tests.
	Random func() float64
}

// defaulted returns the options with every zero field set.
func (o Options) defaulted() Options {
	o.Concurrency = cmp.Or(o.Concurrency, 32)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 10*time.Second)
	o.FirstTimeout = min(cmp.Or(o.FirstTimeout, 3*time.Second), o.ConnectTimeout)
	o.RetryMin = cmp.Or(o.RetryMin, time.Second)
	o.RetryMax = cmp.Or(o.RetryMax, 60*time.Second)
	o.ProbeInterval = cmp.Or(o.ProbeInterval, 60*time.Second)
	o.ProbeRetry = min(cmp.Or(o.ProbeRetry, 5*time.Second), o.ProbeInterval)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 5*time.Second)
	o.ProbeFailures = cmp.Or(o.ProbeFailures, 5)
	o.QPS = cmp.Or(o.QPS, 20)
	o.Burst = cmp.Or(o.Burst, 30)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 30*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 2*time.Minute)
	o.UserAgent = cmp.Or(o.UserAgent, rest.DefaultKubernetesUserAgent())
	o.Limits = o.Limits.Defaulted()
	o.Identify = o.Identify || len(o.Sources) > 1
	o.Scheme = cmp.Or(o.Scheme, scheme.Scheme)
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if o.Log == nil {
		o.Log = ptr.To(log.Log.WithName("fleet"))
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}
