// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// maxClients bounds how many clients keep their connections and access tokens.
const maxClients = 64

// access gives out clients with the credentials that a reference may use: those of
// the Secret that it names, or else the instance's own.
type access struct {
	objects       *object.Reader // nil: no Secret can be read
	own           credentials.Directory
	allowLoopback bool
	userAgent     string
	limits        artifact.Limits
	clock         clock.PassiveClock

	clients *lru.Cache[string, clients] // by host and credential
}

// clients speak to one host with one credential.
type clients struct {
	http     *http.Client
	registry *registryClient
}

func newAccess(options Options, objects *object.Reader, limits artifact.Limits) *access {
	return &access{
		objects:       objects,
		own:           credentials.Directory(options.CredentialsDir),
		allowLoopback: options.AllowLoopback,
		userAgent:     options.UserAgent,
		limits:        limits,
		clock:         options.Clock,
		clients:       lru.New[string](maxClients, lru.One[clients]),
	}
}

// version changes when the credentials that the reference may use do. It is cheap.
func (a *access) version(ctx context.Context, ref reference.Reference) string {
	secret := ref.SecretRef()
	if secret == nil {
		set, err := a.own.Load()
		if err != nil {
			return err.Error()
		}
		return fingerprintOf(ref, set)
	}
	if ref.Bound() {
		return a.boundVersion(ctx, ref)
	}
	return a.secretVersion(ctx, ref)
}

// guest reads the credentials and makes the clients, if there are none yet.
func (a *access) guest(ctx context.Context, ref reference.Reference) (*guest, error) {
	credential, err := a.credential(ctx, ref)
	if err != nil {
		return nil, err
	}
	to := ref.Base()
	host, _ := ref.Host()
	as := &guest{ref: ref, host: host, credential: credential, limits: a.limits}
	plain := to.Scheme == "http" || ref.PlainHTTP()
	name := fmt.Sprintf("%s %s %t %s", to.Scheme, host, plain, as.credential.Fingerprint())
	if known, found := a.clients.Get(name); found {
		as.clients = known
		return as, nil
	}
	as.http, err = egress.New(egress.Options{
		Origin: to,
		CA:     as.credential.CA, Certificate: as.credential.Certificate, Key: as.credential.Key,
		PlainHTTP: plain, AllowLoopback: a.allowLoopback, UserAgent: a.userAgent, Clock: a.clock,
	})
	if err != nil {
		return nil, atCredentials(ref, failure.SourceUnauthorized, err)
	}
	as.registry = newRegistryClient(as.http, host, as.credential)
	a.clients.Put(name, as.clients)
	return as, nil
}

// credential of the set for the reference's host.
func credentialFor(r reference.Reference, set credentials.Set) (credentials.Credential, error) {
	host, path := r.Host()
	at := credentials.Host{Name: host, Path: path, PlainHTTP: r.Base().Scheme == "http"}
	found, err := set.For(at)
	if repository := r.RepositoryHost(); repository != host && err == nil {
		usual := found
		at.Name = repository
		found, err = set.For(at)
		found = found.OrElse(usual)
	}
	return found, err
}

// fingerprint changes when what the set has for the reference's host does.
func fingerprintOf(r reference.Reference, set credentials.Set) string {
	found, err := credentialFor(r, set)
	if err != nil {
		return err.Error()
	}
	return found.Fingerprint()
}

// ownKeys are those of the instance's own Secret that count for the reference's host.
func ownKeys(r reference.Reference) string {
	host := r.RepositoryHost()
	key := credentials.KeyOf(host)
	keys := "config.json, or " + key + ".username and " + key + ".password"
	switch {
	case strings.Contains(host, "_"): // its keys could be those of another host
		return "config.json"
	case r.Chart.GitHub != nil:
		keys = key + ".token"
	}
	return keys
}

// plainKey is the key without which credentials that are bound to the reference's host
// don't go there, for the end of a sentence about others; "" if none is needed.
func plainKey(r reference.Reference) string {
	if r.Base().Scheme != "http" {
		return ""
	}
	return "; without TLS they are sent only if " + credentials.KeyOf(r.RepositoryHost()) + "." + credentials.KeyPlainHTTP + ` is "true" there`
}

// set reads the credentials that the reference may use.
func (a *access) set(ctx context.Context, ref reference.Reference) (credentials.Set, error) {
	secret := ref.SecretRef()
	if secret == nil {
		set, err := a.own.Load()
		if err != nil {
			err = atCredentials(ref, failure.SourceUnauthorized, err)
		}
		return set, err
	}
	if a.objects == nil {
		return credentials.Set{}, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; take the reference out")
	}
	object, err := a.objects.Secret(ctx, reference.Object{Kind: reference.KindSecret, Namespace: ref.Namespace, Name: secret.Name})
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

// registryCredential is the credential as the registry client takes it.
func registryCredential(c credentials.Credential) auth.Credential {
	return auth.Credential{Username: c.Username, Password: c.Password, RefreshToken: c.IdentityToken, AccessToken: c.Token}
}
