// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assigner"
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/controllers/unmanaged"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
	"github.com/cluster-chandler/chandler/webhooks"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

// addServing prepares a manager for what setupWebhooks adds: servers, and a cache of what concerns all instances,
// whatever the scope of the one in this process. The server of the runtime hooks is returned, nil if there is none.
func addServing(m *manager.Options, o *Options, tlsOptions []func(*tls.Config)) (webhook.Server, error) {
	o.assigner.AddCaches(m.Cache.ByObject)
	m.Cache.ByObject[&addonsv1.ProviderInstance{}] = cache.ByObject{Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}}

	serve := func(port int, clientCA string) (webhook.Server, error) {
		options := o.serving
		options.Port, options.TLSOpts = port, tlsOptions
		return reviews.New(reviews.Options{ClientCAFile: clientCA, Options: options})
	}
	server, err := serve(o.serving.Port, o.webhookClientCA)
	if err != nil {
		return nil, err
	}
	m.WebhookServer = server
	if o.hookPort == 0 {
		return nil, nil
	}
	return serve(o.hookPort, o.hookClientCA)
}

// setupWebhooks adds all that instances share: admission, conversion, and the grants of scopes.
func setupWebhooks(mgr manager.Manager, hookServer webhook.Server, o *Options) (healthz.Checker, error) {
	ofStacks := &webhooks.AddonStack{Reader: mgr.GetAPIReader()}
	if o.controllers() { // which have the right, and the cache
		ofStacks.Clusters = mgr.GetClient()
	}
	granter := &providerinstance.Granter{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Memory: grant.NewMemory(clock.RealClock{}), Clock: clock.RealClock{},
	}
	assigns := &assigner.Assigner{
		Options: o.assigner, Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("assigner"), Clock: clock.RealClock{},
	}
	for _, part := range []struct {
		name  string
		setup func(manager.Manager) error
	}{
		{"the AddonStack webhook", ofStacks.SetupWithManager},
		{"the Cluster webhook", (&webhooks.Cluster{Reader: mgr.GetAPIReader()}).SetupWithManager},
		{"the ProviderInstance webhook", (&webhooks.ProviderInstance{Reviews: mgr.GetClient()}).SetupWithManager},
		{"the conversion webhook", conversion.SetupWithManager},
		{"the grants of ProviderInstances", granter.SetupWithManager},
		{"the assignment of Clusters to instances", assigns.SetupWithManager},
	} {
		if err := part.setup(mgr); err != nil {
			return nil, fmt.Errorf("setting up %s: %w", part.name, err)
		}
	}
	if err := mgr.Add(&unmanaged.Counter{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}}); err != nil {
		return nil, fmt.Errorf("adding the count of Clusters that no instance manages: %w", err)
	}
	ready := mgr.GetWebhookServer().StartedChecker()
	if hookServer == nil {
		return ready, nil
	}
	if err := setupHooks(mgr, hookServer, o.hookFailurePolicy); err != nil {
		return nil, fmt.Errorf("setting up the runtime hooks: %w", err)
	}
	return func(r *http.Request) error { return errors.Join(ready(r), hookServer.StartedChecker()(r)) }, nil
}

// setupHooks adds the answers to Cluster API's runtime hooks.
func setupHooks(mgr manager.Manager, server webhook.Server, failurePolicy string) error {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS = -1 // each waiting Cluster asks every few seconds, and mustn't wait for the others
	direct, err := client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	discovery, err := discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	answers := &hooks.Server{
		Client: direct, Instances: mgr.GetClient(), RESTClient: discovery.RESTClient(),
		FailurePolicy: hooksv1.FailurePolicy(failurePolicy), Clock: clock.RealClock{},
	}
	answers.Register(server)
	return errors.Join(mgr.Add(server), mgr.Add(manager.RunnableFunc(answers.Own)))
}
