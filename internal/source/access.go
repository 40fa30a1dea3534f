// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// maxClients bounds how many clients keep their connections and access tokens.
const maxClients = 64

// access gives out clients with the credentials that a reference may use: those of
// the Secret that it names, or else the instance's own.
type access struct {
	objects       *objects // nil: no Secret can be read
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

func newAccess(options Options, limits artifact.Limits) *access {
	a := &access{
		own:           credentials.Directory(options.CredentialsDir),
		allowLoopback: options.AllowLoopback,
		userAgent:     options.UserAgent,
		limits:        limits,
		clock:         options.Clock,
		clients:       lru.New[string](maxClients, lru.One[clients]),
	}
	if options.Client != nil {
		a.objects = newObjects(options.Client, options.Metadata)
	}
	return a
}

// version changes when the credentials that the reference may use do. It is cheap.
func (a *access) version(ctx context.Context, ref Reference) string {
	secret := ref.secretRef()
	if secret == nil {
		set, err := a.own.Load()
		if err != nil {
			return err.Error()
		}
		return ref.fingerprint(set)
	}
	if ref.bound() {
		return a.boundVersion(ctx, ref)
	}
	return a.secretVersion(ctx, ref)
}

// guest reads the credentials and makes the clients, if there are none yet.
func (a *access) guest(ctx context.Context, ref Reference) (*guest, error) {
	credential, err := a.credential(ctx, ref)
	if err != nil {
		return nil, err
	}
	to := ref.base()
	host, _ := ref.host()
	as := &guest{ref: ref, host: host, credential: credential, limits: a.limits}
	plain := to.Scheme == "http" || ref.plainHTTP()
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
		return nil, ref.atCredentials(failure.SourceUnauthorized, err)
	}
	as.registry = newRegistryClient(as.http, host, as.credential)
	a.clients.Put(name, as.clients)
	return as, nil
}

// credential of the set for the reference's host.
func (r Reference) credential(set credentials.Set) (credentials.Credential, error) {
	host, path := r.host()
	at := credentials.Host{Name: host, Path: path, PlainHTTP: r.base().Scheme == "http"}
	found, err := set.For(at)
	if repository := r.repositoryHost(); repository != host && err == nil {
		usual := found
		at.Name = repository
		found, err = set.For(at)
		found = found.OrElse(usual)
	}
	return found, err
}

// fingerprint changes when what the set has for the reference's host does.
func (r Reference) fingerprint(set credentials.Set) string {
	found, err := r.credential(set)
	if err != nil {
		return err.Error()
	}
	return found.Fingerprint()
}

// ownKeys are those of the instance's own Secret that count for the reference's host.
func (r Reference) ownKeys() string {
	host := r.repositoryHost()
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
func (r Reference) plainKey() string {
	if r.base().Scheme != "http" {
		return ""
	}
	return "; without TLS they are sent only if " + credentials.KeyOf(r.repositoryHost()) + "." + credentials.KeyPlainHTTP + ` is "true" there`
}

// set reads the credentials that the reference may use.
func (a *access) set(ctx context.Context, ref Reference) (credentials.Set, error) {
	secret := ref.secretRef()
	if secret == nil {
		set, err := a.own.Load()
		if err != nil {
			err = ref.atCredentials(failure.SourceUnauthorized, err)
		}
		return set, err
	}
	if a.objects == nil {
		return credentials.Set{}, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; take the reference out")
	}
	object := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Namespace: ref.Namespace}}
	if err := a.objects.get(ctx, objectKey{kind: kindSecret, namespace: ref.Namespace, name: secret.Name}, &object); err != nil {
		var missing *failure.Error
		if errors.As(err, &missing) {
			return credentials.Set{}, ref.atCredentials(failure.SourceUnauthorized, missing.Err)
		}
		return credentials.Set{}, ref.atCredentials(failure.SourceUnavailable, err)
	}
	set, err := credentials.FromSecret(object.Data)
	if err != nil {
		err = ref.atCredentials(failure.SourceUnauthorized, err)
	}
	return set, err
}

// atCredentials is an error about the credentials of the reference, not about the source.
func (r Reference) atCredentials(reason string, err error) *failure.Error {
	failed := &failure.Error{Reason: reason, Err: err, Subject: ownSubject, Wait: true}
	if secret := r.secretRef(); secret != nil {
		failed.Part = ".secretRef"
		failed.Subject = fmt.Sprintf("Secret %s/%s", r.Namespace, secret.Name)
	}
	return failed
}

// registryCredential is the credential as the registry client takes it.
func registryCredential(c credentials.Credential) auth.Credential {
	return auth.Credential{Username: c.Username, Password: c.Password, RefreshToken: c.IdentityToken, AccessToken: c.Token}
}
