// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// Names that config/selfsigned gives rights for.
const (
	// SecretName is the Secret of the authority.
	SecretName = "chandler-webhook-ca"
	// ConfigurationName is the ValidatingWebhookConfiguration of Chandler.
	ConfigurationName = "chandler-validating-webhook-configuration"
	// MutatingConfigurationName is the MutatingWebhookConfiguration of Chandler.
	MutatingConfigurationName = "chandler-mutating-webhook-configuration"
)

// Bounds of lifetimes.
const (
	// minLifetime leaves time to renew a certificate in the last third of its life.
	minLifetime = 5 * time.Second
	// minAuthorityLifetime: the library looks at the authority's age every 10 seconds.
	minAuthorityLifetime = time.Minute
	// maxSettle is how long the API server may take until it has seen whom to trust,
	// and how far its clock may be behind.
	maxSettle = 2 * time.Second
)

// Options say what the certificate is for.
type Options struct {
	// Config reaches the management cluster.
	Config *rest.Config
	// Service is the name under which the API server reaches the webhooks, and
	// Namespace where it is, and the authority's Secret.
	Namespace, Service string
	// Lifetime of a certificate. It is renewed after two thirds of that.
	Lifetime time.Duration
	// AuthorityLifetime is the same for the authority.
	AuthorityLifetime time.Duration
	// CRDs whose conversion is served, by name.
	CRDs []string
}

// CheckLifetimes finds lifetimes that can't work.
func CheckLifetimes(certificate, authority time.Duration) error {
	switch {
	case certificate < minLifetime:
		return fmt.Errorf("a certificate's lifetime must be at least %s", minLifetime)
	case authority < minAuthorityLifetime:
		return fmt.Errorf("the authority's lifetime must be at least %s", minAuthorityLifetime)
	case authority < 3*certificate:
		return fmt.Errorf("the authority must live at least three times as long as a certificate, which is %s", 3*certificate)
	}
	return nil
}

// settle returns how long a new certificate is kept before it is served.
func (o Options) settle() time.Duration { return min(maxSettle, o.Lifetime/10) }

// dnsNames by which the API server calls the Service.
func (o Options) dnsNames() []string {
	name := o.Service + "." + o.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}
