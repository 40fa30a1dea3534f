// SPDX-License-Identifier: Apache-2.0

// Package certificates makes and renews the certificate that the webhooks are served
// with, for management clusters without cert-manager.
//
// The authority is in one Secret, which all replicas share. Each replica signs a
// certificate for itself, whose key never leaves the process. Both come from
// cert-manager's own library. This package adds the order of things. A replica that
// signs with a new authority first tells the API server to trust it, beside the old
// one. Only after that does it serve with the new certificate. See
// docs/design/certificates.md.
package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	cmtls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Source hands out the serving certificate, and keeps it fresh while it runs.
type Source struct {
	options  Options
	trust    *trust
	metadata metadata.Interface
	leaf     *cmtls.DynamicSource
}

// New makes a Source. It does nothing until the Server runs. See [CheckLifetimes] for the options.
func New(o Options) (*Source, error) {
	clients, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for the authority's Secret: %w", err)
	}
	objects, err := client.New(o.Config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("making the client for CA bundles: %w", err)
	}
	names, err := metadata.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client that watches CA bundles: %w", err)
	}
	return &Source{
		options:  o,
		metadata: names,
		trust: &trust{
			secrets: clients.CoreV1().Secrets(o.Namespace),
			objects: objects,
			service: serviceKey{namespace: o.Namespace, name: o.Service},
			targets: targets(o.CRDs),
			overlap: o.Lifetime + o.settle(),
			clock:   clock.RealClock{},
		},
		leaf: &cmtls.DynamicSource{DNSNames: o.dnsNames()},
	}, nil
}

// TLSOption has a server take its certificate from here.
func (s *Source) TLSOption(c *tls.Config) { c.GetCertificate = s.leaf.GetCertificate }

// Server returns the webhook server with the Source running beside it. A manager starts
// webhooks before its caches, which may need conversion, so this can't be a runnable of
// its own.
func (s *Source) Server(inner webhook.Server) webhook.Server {
	return &server{Server: inner, source: s}
}

type server struct {
	webhook.Server
	source *Source
}

// Start serves until the context ends.
func (s *server) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.source.run(ctx) })
	group.Go(func() error { return s.Server.Start(ctx) })
	return group.Wait()
}

func (s *Source) run(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("certificates"))
	s.leaf.Authority = &announced{
		DynamicAuthority: &authority.DynamicAuthority{
			SecretNamespace: s.options.Namespace,
			SecretName:      SecretName,
			RESTConfig:      s.options.Config,
			CommonName:      SecretName,
			CADuration:      s.options.AuthorityLifetime,
			LeafDuration:    s.options.Lifetime,
		},
		context: ctx,
		trust:   s.trust,
		settle:  s.options.settle(),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.leaf.Start(ctx) })
	group.Go(func() error { return s.repair(ctx) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("keeping the webhooks' certificate: %w", err)
	}
	return nil
}

// announced is an authority that hands out a certificate only after the API server has
// been told to trust it. Meanwhile the library goes on serving the one before.
type announced struct {
	*authority.DynamicAuthority
	context context.Context // Sign is given none
	trust   *trust
	settle  time.Duration
}

// Sign signs, announces, and waits until that has had time to take effect. An error
// makes the library try again after a second.
func (a *announced) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	leaf, err := a.DynamicAuthority.Sign(template)
	if err != nil {
		return nil, err
	}
	ca, err := a.trust.authority(a.context)
	if err != nil {
		return nil, err
	}
	// Another replica may have made a new authority a moment ago.
	if err := leaf.CheckSignatureFrom(ca); err != nil {
		return nil, fmt.Errorf("the authority in Secret %s has been replaced: %w", SecretName, err)
	}
	if err := a.trust.announce(a.context, ca); err != nil {
		return nil, err
	}
	select {
	case <-a.trust.clock.After(a.settle):
		return leaf, nil
	case <-a.context.Done():
		return nil, errors.New("the process ends")
	}
}
