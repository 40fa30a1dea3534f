// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/cluster-chandler/chandler/controllers"
	"github.com/cluster-chandler/chandler/controllers/assigner"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
)

// Values of --run.
const (
	runControllers = "controllers"
	runWebhooks    = "webhooks"
)

// Options are the flags. Their names are those of Cluster API's own managers,
// where these have such a flag.
type Options struct {
	// Version asks for the version alone.
	Version bool
	run     []string

	clusterSources         []string
	clusterAccessProviders string
	allowDuplicates        bool
	allowProxies           []string
	kubeAPIQPS             float32
	kubeAPIBurst           int
	requireSeccomp         bool
	cacheSizeMiB           int64
	renderMemoryMiB        int64
	memoryMiB              budget.Limits // in MiB
	contentionProfiling    bool
	syncPeriod             time.Duration

	webhookClientCA   string
	hookPort          int
	hookClientCA      string
	hookFailurePolicy string

	// What flags say of the options of others.
	instance    registration.Options
	assigner    assigner.Options
	kubeconfigs files.Options
	fleet       fleet.Options
	workers     controllers.Options
	sources     source.Options
	cache       store.Options
	render      render.Options
	serving     webhook.Options
	manager     manager.Options
	clusterAPI  flags.ManagerOptions
	logs        *logs.Options
}

// newFlagSet binds the options to flags, with their defaults.
func newFlagSet(o *Options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("chandler", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)

	fs.BoolVar(&o.Version, "version", false, "Print the version and exit.")

	fs.StringSliceVar(&o.run, "run", []string{runControllers, runWebhooks},
		"What this process runs: controllers, webhooks, or both. Several instances of the controllers can share one deployment of the webhooks.")
	fs.StringSliceVar(&o.instance.Scope.Namespaces, "namespace", nil,
		"Namespaces that this instance manages: one, or several with commas between. If unspecified, it manages all namespaces.")
	fs.StringVar(&o.instance.Scope.WatchFilter, "watch-filter", "",
		fmt.Sprintf("Value of label %s that an object must have to be managed. If unspecified, labels don't matter.", clusterv1.WatchLabel))

	fs.StringSliceVar(&o.clusterSources, "cluster-sources", []string{clustersSource},
		"Where clusters come from: clusters (of Cluster API), secrets (with a kubeconfig), profiles (of the Cluster Inventory API), files (--kubeconfig-files) and self (the cluster that this instance runs for). If two of them name one cluster, the first has it.")
	fs.BoolVar(&o.allowDuplicates, "allow-duplicate-clusters", false, "Deliver to all Clusters whose kubeconfigs lead to one cluster, where otherwise only the oldest Cluster gets its add-ons. It is meant for tests. A cluster that two of --cluster-sources name is still delivered to once.")
	fs.StringSliceVar(&o.kubeconfigs.Paths, "kubeconfig-files", nil, "Kubeconfig files, and directories of them, for files in --cluster-sources. Their contexts are clusters. Changes are noticed within seconds.")
	fs.StringSliceVar(&o.kubeconfigs.Contexts, "kubeconfig-contexts", nil, "Patterns of the contexts that are clusters, as in kind-*. If unspecified, all are.")
	fs.StringVar(&o.clusterAccessProviders, "cluster-access-providers", "", "YAML file of the programs that get credentials for access providers of ClusterProfiles: a map of names to command, args and env, or a provider file of the Cluster Inventory API. secretreader and kubeconfig-secretreader need none. If unspecified, no program is run.")

	fs.StringVar(&o.instance.Name, "instance-name", "", "Name of this instance's ProviderInstance. If unspecified, it is made of the scope.")
	fs.StringVar(&o.instance.Namespace, "instance-namespace", "", "Namespace of this instance's ProviderInstance. Defaults to the namespace the process runs in; outside of a cluster to --leader-elect-namespace, then to the first --namespace, then to default.")
	fs.DurationVar(&o.instance.Heartbeat, "instance-heartbeat", registration.DefaultHeartbeat, "How often this instance says that it is alive. Other instances wait for four times as long before they take over its scope.")

	fs.BoolVar(&o.instance.Drain, "drain", false, "This instance is to end: the assigner of the shared deployment gives its Clusters to other instances, and none to it.")

	fs.StringSliceVar(&o.assigner.Namespaces, "assign-namespaces", nil, fmt.Sprintf("Namespaces in which Clusters without label %s get that of an instance, with commas between. It is for --run=webhooks alone, and elects a leader. If unspecified, no Cluster is labelled.", clusterv1.WatchLabel))
	fs.IntVar(&o.assigner.MovesPerHour, "assign-moves-per-hour", 60, "How many Clusters of --assign-namespaces go from one instance to another within an hour, so that all have about as many. 0 moves none.")

	fs.BoolVar(&o.manager.LeaderElection, "leader-elect", false, "Elect a leader, so that of several replicas just one works.")
	fs.StringVar(&o.manager.LeaderElectionNamespace, "leader-elect-namespace", "", "Namespace of the lease. Defaults to the namespace the process runs in.")
	o.manager.LeaseDuration = fs.Duration("leader-elect-lease-duration", time.Minute, "How long candidates wait before they take over a lease that isn't renewed.")
	o.manager.RenewDeadline = fs.Duration("leader-elect-renew-deadline", 40*time.Second, "How long the leader tries to renew its lease before it gives up.")
	o.manager.RetryPeriod = fs.Duration("leader-elect-retry-period", 5*time.Second, "How long to wait between tries to take or renew the lease.")

	fs.IntVar(&o.workers.AddonStackWorkers, "addonstack-concurrency", 10, "Number of AddonStacks to process at once.")
	fs.IntVar(&o.workers.ClusterWorkers, "cluster-concurrency", 10, "Number of Clusters to assign AddonStacks to at once.")
	fs.IntVar(&o.workers.ClusterAddonWorkers, "clusteraddon-concurrency", 50, "Number of workload clusters to work on at once.")
	fs.IntVar(&o.fleet.Concurrency, "cluster-connection-concurrency", 100, "Number of workload clusters to connect to at once.")

	fs.DurationVar(&o.syncPeriod, "sync-period", 10*time.Hour, "How often everything is looked at again though no event came. Unchanged objects cost no request.")
	fs.Float32Var(&o.kubeAPIQPS, "kube-api-qps", 100, "Requests per second to the management cluster's API server.")
	fs.IntVar(&o.kubeAPIBurst, "kube-api-burst", 200, "Requests in one burst to the management cluster's API server.")
	fs.Float32Var(&o.fleet.QPS, "cluster-client-qps", 200, "Requests per second to each workload cluster's API server.")
	fs.IntVar(&o.fleet.Burst, "cluster-client-burst", 400, "Requests in one burst to each workload cluster's API server.")
	fs.BoolVar(&o.fleet.AllowInsecureTLS, "allow-insecure-tls", false, "Accept kubeconfigs that switch off the check of the server's certificate, or use plain HTTP.")
	fs.BoolVar(&o.fleet.AllowLoopback, "allow-loopback", false, "Accept kubeconfigs of servers on this host, and sources there. It is for tests and local control planes: in a pod, this host is the pod itself.")

	fs.StringSliceVar(&o.allowProxies, "allow-proxies", nil, "Proxies that kubeconfigs may name as proxy-url: URLs of scheme http, https or socks5 with a host and a port, with commas between. A proxy resolves the server's name, and may reach what this instance refuses to. If unspecified, kubeconfigs with a proxy are refused.")

	fs.StringVar(&o.sources.ArtifactRoot, "artifact-root", "", "Directory of charts that spec.addons[].chart.path refers to. If unspecified, path can't be used.")
	fs.StringVar(&o.sources.CredentialsDir, "credentials-dir", "", "Directory of this instance's own credentials, which are used for chart sources that name none. If unspecified, there are none.")
	fs.StringVar(&o.sources.RequireSignaturesBy, "require-signatures-by", "", "Directory of this instance's own keys (*.pub of cosign, *.gpg with OpenPGP keyrings). All that comes from other hosts has to be signed by one of them, whatever objects say, and nothing is taken from ConfigMaps and Secrets. If unspecified, objects alone say what is verified.")
	fs.BoolVar(&o.workers.RequireImpersonation, "require-impersonation", false, "Deliver add-ons only of AddonStacks that name a ServiceAccount of the workload clusters in spec.serviceAccountName, with its rights. If unspecified, stacks that name none have the rights of the Clusters' kubeconfigs.")
	fs.StringVar(&o.cache.Directory, "cache-dir", "", "Directory to keep in what was fetched from registries, repositories and other hosts, so that a restart doesn't fetch it again. It is for one instance; its replicas may share it. If unspecified, it is kept in memory only.")
	fs.Int64Var(&o.cacheSizeMiB, "cache-size-mib", store.DefaultBytes>>20, "How much is kept in --cache-dir, in MiB.")
	fs.IntVar(&o.render.Workers, "render-workers", 0, "Number of processes that render charts. 0 is the number of CPUs. While a namespace has all of them, another one finds one more, and so does a third one.")
	fs.BoolVar(&o.requireSeccomp, "require-seccomp", false, "Don't start where seccomp can't filter the system calls of the processes that render charts. If unspecified, they have their other limits alone there.")
	fs.DurationVar(&o.render.Timeout, "render-timeout", 20*time.Second, "How long the rendering of one chart may take, in time on a processor.")
	fs.Int64Var(&o.renderMemoryMiB, "render-memory-mib", 256, "Memory that one rendering process may use, in MiB.")

	fs.Int64Var(&o.memoryMiB.All, "memory-mib", 512, "Memory for what sources and workload clusters answer, and for what is kept of that, in MiB. What finds no room waits.")
	fs.Int64Var(&o.memoryMiB.Namespace, "memory-per-namespace-mib", 256, "How much of --memory-mib one namespace may have, in MiB.")
	fs.Int64Var(&o.memoryMiB.Cluster, "memory-per-cluster-mib", 192, "How much of --memory-per-namespace-mib one workload cluster may have, in MiB.")

	fs.StringVar(&o.manager.HealthProbeBindAddress, "health-addr", ":9440", "Address of the health endpoint.")
	fs.StringVar(&o.manager.PprofBindAddress, "profiler-address", "", "Address of the pprof endpoint, as in localhost:6060. If unspecified, there is none.")
	fs.BoolVar(&o.contentionProfiling, "contention-profiling", false, "Profile blocking on locks.")

	fs.IntVar(&o.serving.Port, "webhook-port", 9443, "Port of the webhook server. 0 means that this process serves no webhooks, and grants no instance its scope.")
	fs.StringVar(&o.serving.CertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "Directory of the webhook server's certificate.")
	fs.StringVar(&o.serving.CertName, "webhook-cert-name", "tls.crt", "Name of the certificate's file in --webhook-cert-dir.")
	fs.StringVar(&o.serving.KeyName, "webhook-key-name", "tls.key", "Name of the key's file in --webhook-cert-dir.")
	fs.StringVar(&o.webhookClientCA, "webhook-client-ca-file", "", "File of the authorities whose client certificates admission webhooks require of the API server, in PEM. It is read at the start. If unspecified, they answer everybody. Conversion always does: API servers show no certificate there.")

	fs.IntVar(&o.hookPort, "hook-port", 9444, "Port of the server of Cluster API's runtime hooks, which has the webhooks' certificate. 0 means that this process answers none.")
	fs.StringVar(&o.hookClientCA, "hook-client-ca-file", "", "File of the authorities whose client certificates the runtime hooks require of Cluster API, in PEM. It is read at the start. If unspecified, they answer everybody who reaches the port.")
	fs.StringVar(&o.hookFailurePolicy, "hook-failure-policy", hooks.FailurePolicies[0], "What Cluster API does before it upgrades a control plane, or deletes a Cluster, while nobody answers its runtime hooks: Fail waits, Ignore continues. After something was upgraded it always continues.")

	flags.AddManagerOptions(fs, &o.clusterAPI)
	management := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(management) // --kubeconfig
	fs.AddGoFlagSet(management)
	o.logs = logs.NewOptions()
	logsv1.AddFlags(o.logs, fs)
	return fs
}

// controllers reports whether this process runs the controllers.
func (o *Options) controllers() bool { return slices.Contains(o.run, runControllers) }

// webhooks reports whether this process serves webhooks.
func (o *Options) webhooks() bool { return slices.Contains(o.run, runWebhooks) && o.serving.Port != 0 }

// elects reports whether a leader is elected: only one replica runs controllers, or assigns Clusters, while
// each serves webhooks.
func (o *Options) elects() bool {
	return o.manager.LeaderElection && o.controllers() || len(o.assigner.Namespaces) > 0
}

// Parse reads the command line. The error is one line that says what to change.
func Parse(args []string) (*Options, *pflag.FlagSet, error) {
	o := &Options{}
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
