// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Credentials for a dependency that isn't at the place of its chart: a chart may name
// any host, and must not get anything of the Secret that way but what is for this one.

// credential is what the reference may show its host.
func (a *access) credential(ctx context.Context, ref reference.Reference) (credentials.Credential, error) {
	set, err := a.set(ctx, ref)
	if err != nil {
		return credentials.Credential{}, err
	}
	if ref.Bound() {
		set = set.Bound()
	}
	given, err := credentialFor(ref, set)
	if err != nil {
		return credentials.Credential{}, atCredentials(ref, failure.SourceUnauthorized, err)
	}
	if !ref.Bound() || !given.IsZero() {
		return given, nil
	}
	own, err := a.own.Load()
	if err != nil {
		return credentials.Credential{}, atOwnCredentials(ref, failure.SourceUnauthorized, err)
	}
	found, err := credentialFor(ref, own)
	if err != nil {
		return credentials.Credential{}, atOwnCredentials(ref, failure.SourceUnauthorized, err)
	}
	if found.IsZero() { // else whoever wrote the Secret could say whom the instance's credentials are shown
		found.CA = append(append([]byte{}, given.CA...), found.CA...)
	}
	return found, nil
}

// boundVersion changes when what the reference may show its host does.
func (a *access) boundVersion(ctx context.Context, ref reference.Reference) string {
	own, err := a.own.Load()
	if err != nil {
		return err.Error()
	}
	return a.secretVersion(ctx, ref) + " " + fingerprintOf(ref, own)
}

// secretVersion changes when the Secret does; "" if that can't be told.
func (a *access) secretVersion(ctx context.Context, ref reference.Reference) string {
	if a.objects == nil {
		return ""
	}
	return a.objects.Version(ctx, reference.Object{Kind: reference.KindSecret, Namespace: ref.Namespace, Name: ref.SecretRef().Name})
}

// atOwnCredentials is an error about the instance's credentials.
func atOwnCredentials(r reference.Reference, reason string, err error) *failure.Error {
	failed := atCredentials(r, reason, err)
	failed.Part, failed.Subject = "", ownSubject
	return failed
}
