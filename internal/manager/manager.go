// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/version"
)

// cacheSyncTimeout is how long the first LIST of all kinds may take. The time
// is needed on large management clusters only.
const cacheSyncTimeout = 5 * time.Minute

// newManager makes the manager with all that runs in it: an instance of the
// controllers, the webhooks, or both.
func newManager(config *rest.Config, o *Options, renderer *render.Renderer) (manager.Manager, error) {
	config.QPS, config.Burst = o.kubeAPIQPS, o.kubeAPIBurst
	config.UserAgent = userAgent()
	if o.contentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	managerOptions, hookServer, err := managerOptions(config, o)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(config, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	ready := healthz.Ping
	if o.controllers() {
		if ready, err = setupInstance(mgr, o, renderer); err != nil {
			return nil, err
		}
	}
	if o.webhooks() {
		// Ready means that webhooks are served, also if the instance of this process
		// waits: its own claim has to be admitted by them.
		if ready, err = setupWebhooks(mgr, hookServer, o); err != nil {
			return nil, err
		}
	}
	return mgr, errors.Join(mgr.AddReadyzCheck("ready", ready), mgr.AddHealthzCheck("alive", healthz.Ping))
}

// managerOptions returns the options of the manager, and the server of the runtime hooks, nil for none.
func managerOptions(config *rest.Config, o *Options) (manager.Options, webhook.Server, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, inventoryv1alpha1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return manager.Options{}, nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	tlsOptions, metricsOptions, err := flags.GetManagerOptions(o.clusterAPI)
	if err != nil {
		return manager.Options{}, nil, fmt.Errorf("TLS options: %w", err)
	}
	scope, result := o.instance.Scope, o.manager
	result.Scheme, result.Metrics = scheme, *metricsOptions
	result.MapperProvider = instance.NewMapper
	keep := instance.Version
	if slices.Contains(o.clusterSources, secrets.Name) { // which finds clusters by the Secrets' labels
		keep = instance.Metadata
	}
	result.Cache, result.Client = scope.CacheOptions(o.syncPeriod, keep), scope.ClientOptions()
	result.Controller.CacheSyncTimeout = cacheSyncTimeout
	result.LeaderElection = o.elects()
	result.LeaderElectionConfig = registration.OwnConnection(config)
	result.LeaderElectionID = scope.LeaderElectionID()
	result.LeaderElectionResourceLock = resourcelock.LeasesResourceLock
	result.LeaderElectionReleaseOnCancel = true // the process ends right after
	if o.webhooks() {
		hookServer, err := addServing(&result, o, tlsOptions)
		return result, hookServer, err
	}
	return result, nil, nil
}

func userAgent() string { return "chandler/" + version.Get() }
