// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// credential returns what the reference may show its host.
func (a *Access) credential(ctx context.Context, ref reference.Reference) (credentials.Credential, error) {
	set, err := a.set(ctx, ref)
	if err != nil {
		return credentials.Credential{}, err
	}
	given, err := credentialFor(ref, set)
	if err != nil {
		return credentials.Credential{}, atCredentials(ref, failure.SourceUnauthorized, err)
	}
	return given, nil
}

// secretVersion changes when the Secret does; "" if that can't be told.
func (a *Access) secretVersion(ctx context.Context, ref reference.Reference) string {
	if a.Objects == nil {
		return ""
	}
	return a.Objects.Version(ctx, ref.Secret())
}

// credentialFor is that of the set for the reference's host.
func credentialFor(r reference.Reference, set credentials.Set) (credentials.Credential, error) {
	host, path := r.Host()
	at := credentials.Host{Name: host, Path: path, PlainHTTP: r.Base().Scheme == "http", AnyPath: r.Chart.HTTP != nil}
	found, err := set.For(at)
	if repository := r.RepositoryHost(); repository != host && err == nil {
		usual := found
		at.Name = repository
		found, err = set.For(at)
		found = found.OrElse(usual)
	}
	return found, err
}

// fingerprintOf changes when what the set has for the reference's host does.
func fingerprintOf(r reference.Reference, set credentials.Set) string {
	found, err := credentialFor(r, set)
	if err != nil {
		return err.Error()
	}
	return found.Fingerprint()
}

// set reads the credentials that the reference may use.
func (a *Access) set(ctx context.Context, ref reference.Reference) (credentials.Set, error) {
	if ref.SecretRef() == nil {
		set, err := a.own.Load()
		if err != nil {
			err = atCredentials(ref, failure.SourceUnauthorized, err)
		}
		return set, err
	}
	if a.Objects == nil {
		return credentials.Set{}, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; take the reference out")
	}
	object, err := a.Objects.Secret(ctx, ref.Secret())
	if err != nil {
		var missing *failure.Error
		if errors.As(err, &missing) {
			return credentials.Set{}, atCredentials(ref, failure.SourceUnauthorized, missing.Err)
		}
		return credentials.Set{}, atCredentials(ref, failure.SourceUnavailable, err)
	}
	set, err := credentials.FromSecret(object.Data)
	if err != nil {
		err = atCredentials(ref, failure.SourceUnauthorized, err)
	}
	return set, err
}

// atCredentials is an error about the credentials of the reference, not about the source.
func atCredentials(r reference.Reference, reason string, err error) *failure.Error {
	failed := &failure.Error{Reason: reason, Err: err, Subject: ownSubject, Wait: true}
	if secret := r.SecretRef(); secret != nil {
		failed.Part = ".secretRef"
		failed.Subject = fmt.Sprintf("Secret %s/%s", r.Namespace, secret.Name)
	}
	return failed
}
