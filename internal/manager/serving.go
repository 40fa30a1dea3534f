// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/internal/certificates"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
	"github.com/cluster-chandler/chandler/webhooks"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
	"github.com/cluster-chandler/chandler/webhooks/migration"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

// addServing prepares a manager for what setupWebhooks adds: a server, and a cache
// of what concerns all instances, whatever the scope of the one in this process.
func addServing(m *manager.Options, config *rest.Config, o *Options, tlsOptions []func(*tls.Config)) error {
	if err := apiextensionsv1.AddToScheme(m.Scheme); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	maps.Copy(m.Cache.ByObject, migration.CacheByObject())
	m.Cache.ByObject[&addonsv1.ProviderInstance{}] = cache.ByObject{Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}}

	server := webhook.Options{
		Port: o.webhookPort, CertDir: o.webhookCertDir, CertName: o.webhookCertName, KeyName: o.webhookKeyName, TLSOpts: tlsOptions,
	}
	clientCertificates := o.webhookClientCA != ""
	if clientCertificates {
		option, err := reviews.ClientCA(o.webhookClientCA)
		if err != nil {
			return err
		}
		server.TLSOpts = append(server.TLSOpts, option)
	}
	if o.webhookCertSource == certFromFiles {
		m.WebhookServer = reviews.Limited(webhook.NewServer(server), clientCertificates)
		return nil
	}
	source, err := certificates.New(certificates.Options{
		Config:            config,
		Namespace:         cmp.Or(o.webhookServiceNamespace, podNamespace(), "chandler-webhooks"),
		Service:           o.webhookService,
		Lifetime:          o.webhookCertLifetime,
		AuthorityLifetime: o.webhookCALifetime,
		CRDs:              []string{migration.CRD}, // the only one with versions to convert
	})
	if err != nil {
		return fmt.Errorf("setting up the webhooks' certificate: %w", err)
	}
	server.TLSOpts = append(server.TLSOpts, source.TLSOption)
	m.WebhookServer = reviews.Limited(source.Server(webhook.NewServer(server)), clientCertificates)
	return nil
}

// setupWebhooks adds all that instances share: admission, conversion, the migration
// of stored versions, and the watch over who is alive.
func setupWebhooks(ctx context.Context, mgr manager.Manager, hookFailurePolicy string) (healthz.Checker, error) {
	observer := arbiter.NewObserver(clock.RealClock{})
	instances := &webhooks.ProviderInstance{Arbiter: arbiter.New(mgr.GetAPIReader(), observer), Reviews: mgr.GetClient()}
	expiry := &providerinstance.ExpiryReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Observer: observer, Clock: clock.RealClock{},
	}
	for _, part := range []struct {
		name  string
		setup func(manager.Manager) error
	}{
		{"the AddonStack webhook", (&webhooks.AddonStack{Reader: mgr.GetAPIReader()}).SetupWithManager},
		{"the Cluster webhook", (&webhooks.Cluster{Reader: mgr.GetAPIReader()}).SetupWithManager},
		{"the ProviderInstance webhook", instances.SetupWithManager},
		{"the conversion webhook", conversion.SetupWithManager},
		{"the expiry of ProviderInstances", expiry.SetupWithManager},
		{"the runtime hooks", func(mgr manager.Manager) error { return setupHooks(mgr, hookFailurePolicy) }},
	} {
		if err := part.setup(mgr); err != nil {
			return nil, fmt.Errorf("setting up %s: %w", part.name, err)
		}
	}
	if err := migration.Setup(ctx, mgr); err != nil {
		return nil, err
	}
	return mgr.GetWebhookServer().StartedChecker(), nil
}

// setupHooks adds the answers to Cluster API's runtime hooks.
func setupHooks(mgr manager.Manager, failurePolicy string) error {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS = -1 // each waiting Cluster asks every few seconds, and mustn't wait for the others
	reader, err := client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	discovery, err := discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	server := &hooks.Server{
		Reader: reader, Instances: mgr.GetClient(), RESTClient: discovery.RESTClient(),
		FailurePolicy: hooksv1.FailurePolicy(failurePolicy), Clock: clock.RealClock{},
	}
	server.Register(mgr.GetWebhookServer())
	return nil
}
