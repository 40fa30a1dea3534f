// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
)

// options are the flags. Their names are those of Cluster API's own managers,
// where these have such a flag.
type options struct {
	version bool

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

// validate finds values, and combinations of them, that can't work.
func (o *options) validate() error {
	if o.version {
		return nil
	}
	for _, check := range []func() error{o.validateScope, o.validateLeases, o.validateNumbers, o.validateServing} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) validateScope() error {
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("--namespace: %q is no name of a namespace: %s", namespace, problems[0])
		}
	}
	if problems := validation.IsValidLabelValue(o.watchFilter); len(problems) > 0 {
		return fmt.Errorf("--watch-filter: %q is no value of a label: %s", o.watchFilter, problems[0])
	}
	return nil
}

// validateAddresses finds what is no address, and ports that are taken twice. "0"
// and, but for health, "" switch a server off.
func (o *options) validateAddresses() error {
	taken := map[string]string{}
	if o.webhookPort != 0 {
		taken[strconv.Itoa(o.webhookPort)] = "--webhook-port"
	}
	for _, flag := range []struct{ name, address string }{
		{"--health-addr", o.healthAddr},
		{"--diagnostics-address", o.manager.DiagnosticsAddress},
		{"--profiler-address", o.profilerAddress},
	} {
		if flag.address == "" || flag.address == "0" {
			continue
		}
		_, port, err := net.SplitHostPort(flag.address)
		if err != nil {
			return fmt.Errorf("%s: %q is no address, as in :9440 or localhost:9440", flag.name, flag.address)
		}
		if other, ok := taken[port]; ok && port != "0" {
			return fmt.Errorf("%s and %s both take port %s", other, flag.name, port)
		}
		taken[port] = flag.name
	}
	return nil
}

func (o *options) validateLeases() error {
	if problems := validation.IsDNS1123Label(o.leaderElectNamespace); o.leaderElectNamespace != "" && len(problems) > 0 {
		return fmt.Errorf("--leader-elect-namespace: %q is no name of a namespace: %s", o.leaderElectNamespace, problems[0])
	}
	inOrder := o.leaderElectLeaseDuration > o.leaderElectRenewDeadline &&
		o.leaderElectRenewDeadline > o.leaderElectRetryPeriod && o.leaderElectRetryPeriod > 0
	if o.leaderElect && !inOrder {
		return errors.New("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than --leader-elect-retry-period")
	}
	return nil
}

func (o *options) validateNumbers() error {
	for _, flag := range []struct {
		name   string
		number int
	}{
		{"addonstack-concurrency", o.addonStackConcurrency},
		{"cluster-concurrency", o.clusterConcurrency},
		{"clusteraddon-concurrency", o.clusterAddonConcurrency},
		{"cluster-connection-concurrency", o.clusterConnectionConcurrency},
		{"kube-api-burst", o.kubeAPIBurst},
		{"cluster-client-burst", o.clusterClientBurst},
	} {
		if flag.number < 1 {
			return fmt.Errorf("--%s must be at least 1", flag.name)
		}
	}
	if o.kubeAPIQPS <= 0 || o.clusterClientQPS <= 0 {
		return errors.New("--kube-api-qps and --cluster-client-qps must be greater than 0")
	}
	if o.renderWorkers < 0 || o.renderTimeout <= 0 || o.renderMemoryMiB < 64 {
		return errors.New("--render-workers must not be negative, --render-timeout greater than 0, and --render-memory-mib at least 64")
	}
	if o.syncPeriod <= 0 {
		return errors.New("--sync-period must be greater than 0")
	}
	return nil
}

func (o *options) validateServing() error {
	if errs := logsv1.Validate(o.logs, nil, nil); len(errs) > 0 {
		return fmt.Errorf("logging options: %w", errs.ToAggregate())
	}
	if err := o.validateAddresses(); err != nil {
		return err
	}
	if o.webhookPort < 0 || o.webhookPort > 65535 {
		return fmt.Errorf("--webhook-port: %d is no port; 0 means no webhooks", o.webhookPort)
	}
	if o.artifactRoot != "" {
		if info, err := os.Stat(o.artifactRoot); err != nil || !info.IsDir() {
			return fmt.Errorf("--artifact-root: %s is no directory", o.artifactRoot)
		}
	}
	if _, _, err := flags.GetManagerOptions(o.manager); err != nil {
		return fmt.Errorf("TLS options: %w", err)
	}
	return nil
}
