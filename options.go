// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
)

// Values of --run.
const (
	runControllers = "controllers"
	runWebhooks    = "webhooks"
)

// options are the flags. Their names are those of Cluster API's own managers,
// where these have such a flag.
type options struct {
	version bool
	run     []string

	namespaces  []string
	watchFilter string

	leaderElect              bool
	leaderElectNamespace     string
	leaderElectLeaseDuration time.Duration
	leaderElectRenewDeadline time.Duration
	leaderElectRetryPeriod   time.Duration

	addonStackConcurrency        int
	clusterConcurrency           int
	clusterAddonConcurrency      int
	clusterConnectionConcurrency int

	syncPeriod          time.Duration
	kubeAPIQPS          float32
	kubeAPIBurst        int
	clusterClientQPS    float32
	clusterClientBurst  int
	allowInsecureTLS    bool
	allowLoopback       bool
	artifactRoot        string
	renderWorkers       int
	renderTimeout       time.Duration
	renderMemoryMiB     int64
	healthAddr          string
	profilerAddress     string
	contentionProfiling bool

	webhookPort     int
	webhookCertDir  string
	webhookCertName string
	webhookKeyName  string

	manager flags.ManagerOptions
	logs    *logs.Options
}

// newFlagSet binds the options to flags, with their defaults.
func newFlagSet(o *options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("chandler", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	fs.SortFlags = true

	fs.BoolVar(&o.version, "version", false, "Print the version and exit.")

	fs.StringSliceVar(&o.run, "run", []string{runControllers, runWebhooks},
		"What this process runs: controllers, webhooks, or both. Several instances of the controllers can share one deployment of the webhooks.")
	fs.StringSliceVar(&o.namespaces, "namespace", nil,
		"Namespaces that this instance looks after: one, or several with commas between. If unspecified, it looks after all namespaces.")
	fs.StringVar(&o.watchFilter, "watch-filter", "",
		fmt.Sprintf("Value of label %s that an object must have to be looked after. If unspecified, labels don't matter.", clusterv1.WatchLabel))

	fs.BoolVar(&o.leaderElect, "leader-elect", false, "Elect a leader, so that of several replicas just one works.")
	fs.StringVar(&o.leaderElectNamespace, "leader-elect-namespace", "", "Namespace of the lease. Defaults to the namespace the process runs in.")
	fs.DurationVar(&o.leaderElectLeaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long candidates wait before they take over a lease that isn't renewed.")
	fs.DurationVar(&o.leaderElectRenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to renew its lease before it gives up.")
	fs.DurationVar(&o.leaderElectRetryPeriod, "leader-elect-retry-period", 2*time.Second, "How long to wait between tries to take or renew the lease.")

	fs.IntVar(&o.addonStackConcurrency, "addonstack-concurrency", 10, "Number of AddonStacks to process at once.")
	fs.IntVar(&o.clusterConcurrency, "cluster-concurrency", 10, "Number of Clusters to assign AddonStacks to at once.")
	fs.IntVar(&o.clusterAddonConcurrency, "clusteraddon-concurrency", 50, "Number of workload clusters to work on at once.")
	fs.IntVar(&o.clusterConnectionConcurrency, "cluster-connection-concurrency", 100, "Number of workload clusters to connect to at once.")

	fs.DurationVar(&o.syncPeriod, "sync-period", 10*time.Hour, "How often everything is looked at again though no event came. Unchanged objects cost no request.")
	fs.Float32Var(&o.kubeAPIQPS, "kube-api-qps", 100, "Requests per second to the management cluster's API server.")
	fs.IntVar(&o.kubeAPIBurst, "kube-api-burst", 200, "Requests in one burst to the management cluster's API server.")
	fs.Float32Var(&o.clusterClientQPS, "cluster-client-qps", 50, "Requests per second to each workload cluster's API server.")
	fs.IntVar(&o.clusterClientBurst, "cluster-client-burst", 100, "Requests in one burst to each workload cluster's API server.")
	fs.BoolVar(&o.allowInsecureTLS, "allow-insecure-tls", false, "Accept kubeconfigs that switch off the check of the server's certificate, or use plain HTTP.")
	fs.BoolVar(&o.allowLoopback, "allow-loopback", false, "Accept kubeconfigs of servers on this host. It is for tests and local control planes: in a pod, this host is the pod itself.")

	fs.StringVar(&o.artifactRoot, "artifact-root", "", "Directory of charts that spec.addons[].chart.path refers to. If unspecified, path can't be used.")
	fs.IntVar(&o.renderWorkers, "render-workers", 0, "Number of processes that render charts. 0 is the number of CPUs.")
	fs.DurationVar(&o.renderTimeout, "render-timeout", 20*time.Second, "How long the rendering of one chart may take.")
	fs.Int64Var(&o.renderMemoryMiB, "render-memory-mib", 512, "Memory that one rendering process may use, in MiB.")

	fs.StringVar(&o.healthAddr, "health-addr", ":9440", "Address of the health endpoint.")
	fs.StringVar(&o.profilerAddress, "profiler-address", "", "Address of the pprof endpoint, as in localhost:6060. If unspecified, there is none.")
	fs.BoolVar(&o.contentionProfiling, "contention-profiling", false, "Profile blocking on locks.")

	fs.IntVar(&o.webhookPort, "webhook-port", 9443, "Port of the webhook server. 0 means that this process serves no webhooks.")
	fs.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "Directory of the webhook server's certificate.")
	fs.StringVar(&o.webhookCertName, "webhook-cert-name", "tls.crt", "Name of the certificate's file in --webhook-cert-dir.")
	fs.StringVar(&o.webhookKeyName, "webhook-key-name", "tls.key", "Name of the key's file in --webhook-cert-dir.")

	flags.AddManagerOptions(fs, &o.manager)
	o.logs = logs.NewOptions()
	logsv1.AddFlags(o.logs, fs)
	return fs
}

// controllers says whether this process runs the controllers.
func (o *options) controllers() bool { return slices.Contains(o.run, runControllers) }

// webhooks says whether this process serves webhooks.
func (o *options) webhooks() bool { return slices.Contains(o.run, runWebhooks) && o.webhookPort != 0 }

// parse reads the command line. The error is one line that says what to change.
func parse(args []string) (*options, *pflag.FlagSet, error) {
	o := &options{}
	fs := newFlagSet(o)
	fs.Usage = func() {}
	if err := fs.Parse(args); err != nil {
		return o, fs, err
	}
	if fs.NArg() > 0 {
		return o, fs, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, fs, o.validate()
}
