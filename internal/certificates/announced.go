// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
)

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
