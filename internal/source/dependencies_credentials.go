// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// Credentials for a dependency that isn't at the place of its chart: a chart may name
// any host, and must not get anything of the Secret that way but what is for this one.

// credential is what the reference may show its host.
func (a *access) credential(ctx context.Context, ref Reference) (credentials.Credential, error) {
	set, err := a.set(ctx, ref)
	if err != nil {
		return credentials.Credential{}, err
	}
	if ref.bound() {
		set = set.Bound()
	}
	given, err := ref.credential(set)
	if err != nil {
		return credentials.Credential{}, ref.atCredentials(failure.SourceUnauthorized, err)
	}
	if !ref.bound() || !given.IsZero() {
		return given, nil
	}
	own, err := a.own.Load()
	if err != nil {
		return credentials.Credential{}, ref.atOwnCredentials(failure.SourceUnauthorized, err)
	}
	found, err := ref.credential(own)
	if err != nil {
		return credentials.Credential{}, ref.atOwnCredentials(failure.SourceUnauthorized, err)
	}
	if found.IsZero() { // else whoever wrote the Secret could say whom the instance's credentials are shown
		found.CA = append(append([]byte{}, given.CA...), found.CA...)
	}
	return found, nil
}

// boundVersion changes when what the reference may show its host does.
func (a *access) boundVersion(ctx context.Context, ref Reference) string {
	own, err := a.own.Load()
	if err != nil {
		return err.Error()
	}
	return a.secretVersion(ctx, ref) + " " + ref.fingerprint(own)
}

// secretVersion changes when the Secret does; "" if that can't be told.
func (a *access) secretVersion(ctx context.Context, ref Reference) string {
	if a.objects == nil {
		return ""
	}
	return a.objects.version(ctx, objectKey{kind: kindSecret, namespace: ref.Namespace, name: ref.secretRef().Name})
}

// atOwnCredentials is an error about the instance's credentials.
func (r Reference) atOwnCredentials(reason string, err error) *failure.Error {
	failed := r.atCredentials(reason, err)
	failed.Part, failed.Subject = "", ownSubject
	return failed
}
