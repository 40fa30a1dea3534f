// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers"
	"github.com/cluster-chandler/chandler/internal/fleet"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/version"
	"github.com/cluster-chandler/chandler/webhooks"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// cacheSyncTimeout is how long the first LIST of all kinds may take. The time
// is needed on large management clusters only.
const cacheSyncTimeout = 5 * time.Minute

// newManager makes the multicluster manager with all that runs in it.
func newManager(config *rest.Config, o *options, renderer *render.Renderer) (mcmanager.Manager, error) {
	config.QPS, config.Burst = o.kubeAPIQPS, o.kubeAPIBurst
	config.UserAgent = userAgent()
	if o.contentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	managerOptions, err := managerOptions(o)
	if err != nil {
		return nil, err
	}
	// A process that serves webhooks alone reaches no workload cluster.
	var clusters *fleet.Provider
	var provider multicluster.Provider
	if o.controllers() {
		clusters = newFleet(o)
		provider = clusters
	}
	mgr, err := mcmanager.New(config, provider, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := setupChecks(mgr.GetLocalManager(), o); err != nil {
		return nil, err
	}
	if o.controllers() {
		if err := setupControllers(mgr, clusters, o, renderer); err != nil {
			return nil, err
		}
	}
	if o.webhooks() {
		if err := (&webhooks.AddonStack{}).SetupWithManager(mgr.GetLocalManager()); err != nil {
			return nil, fmt.Errorf("setting up the AddonStack webhook: %w", err)
		}
	}
	return mgr, nil
}

func newFleet(o *options) *fleet.Provider {
	return fleet.NewProvider(fleet.Options{
		Concurrency:      o.clusterConnectionConcurrency,
		QPS:              o.clusterClientQPS,
		Burst:            o.clusterClientBurst,
		UserAgent:        userAgent(),
		AllowInsecureTLS: o.allowInsecureTLS,
		AllowLoopback:    o.allowLoopback,
		CacheLabel:       addonsv1.AddonLabel,
		WatchFilter:      o.watchFilter,
	})
}

func managerOptions(o *options) (manager.Options, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return manager.Options{}, fmt.Errorf("building the scheme: %w", err)
		}
	}
	tlsOptions, metricsOptions, err := flags.GetManagerOptions(o.manager)
	if err != nil {
		return manager.Options{}, fmt.Errorf("TLS options: %w", err)
	}
	scope := instance.Scope{Namespaces: o.namespaces, WatchFilter: o.watchFilter}
	result := manager.Options{
		Scheme:                        scheme,
		Cache:                         scope.CacheOptions(o.syncPeriod),
		Client:                        scope.ClientOptions(),
		LeaderElection:                o.leaderElect && o.controllers(), // each replica serves webhooks
		LeaderElectionID:              scope.LeaderElectionID(),
		LeaderElectionNamespace:       o.leaderElectNamespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true, // the process ends right after
		LeaseDuration:                 &o.leaderElectLeaseDuration,
		RenewDeadline:                 &o.leaderElectRenewDeadline,
		RetryPeriod:                   &o.leaderElectRetryPeriod,
		HealthProbeBindAddress:        o.healthAddr,
		PprofBindAddress:              o.profilerAddress,
		Metrics:                       *metricsOptions,
	}
	result.Controller.CacheSyncTimeout = cacheSyncTimeout
	if o.webhooks() {
		result.WebhookServer = webhook.NewServer(webhook.Options{
			Port: o.webhookPort, CertDir: o.webhookCertDir, CertName: o.webhookCertName, KeyName: o.webhookKeyName, TLSOpts: tlsOptions,
		})
	}
	return result, nil
}

func newRenderer(o *options) *render.Renderer {
	return render.New(render.Options{
		Workers:     o.renderWorkers,
		Timeout:     o.renderTimeout,
		MemoryBytes: o.renderMemoryMiB << 20,
	})
}

func setupControllers(mgr mcmanager.Manager, clusters *fleet.Provider, o *options, renderer *render.Renderer) error {
	if err := clusters.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the fleet provider: %w", err)
	}
	local := mgr.GetLocalManager()
	sources, err := source.New(source.Options{ArtifactRoot: o.artifactRoot, Client: local.GetAPIReader(), Metadata: local.GetCache()})
	if err != nil {
		return fmt.Errorf("setting up the chart sources: %w", err)
	}
	return controllers.Setup(mgr, controllers.Options{
		Fleet:               clusters,
		Sources:             sources,
		Renderer:            renderer,
		AddonStackWorkers:   o.addonStackConcurrency,
		ClusterWorkers:      o.clusterConcurrency,
		ClusterAddonWorkers: o.clusterAddonConcurrency,
	})
}

func setupChecks(mgr manager.Manager, o *options) error {
	ready := healthz.Ping
	if o.webhooks() {
		ready = mgr.GetWebhookServer().StartedChecker()
	}
	if err := mgr.AddReadyzCheck("ready", ready); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	return nil
}

func userAgent() string { return "chandler/" + version.Get() }
