// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// maxClients bounds how many clients keep their connections and access tokens.
const maxClients = 64

// Access gives out clients with the credentials that a reference may use: those of
// the Secret that it names, or else the instance's own.
type Access struct {
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
	HTTP     *http.Client
	Registry *registryClient
}

// Options of [New].
type Options struct {
	// Objects reads Secrets. Nil: no Secret can be read.
	Objects *object.Reader
	// CredentialsDir has the instance's own credentials. It may be missing, and may change.
	CredentialsDir string
	// AllowLoopback lets hosts be this one.
	AllowLoopback bool
	// UserAgent of requests.
	UserAgent string
	// Limits of what is fetched.
	Limits artifact.Limits
	// Clock of what hosts want to be waited for.
	Clock clock.PassiveClock
}

// New keeps clients with their connections for all who have the same credentials.
func New(options Options) *Access {
	return &Access{
		objects:       options.Objects,
		own:           credentials.Directory(options.CredentialsDir),
		allowLoopback: options.AllowLoopback,
		userAgent:     options.UserAgent,
		limits:        options.Limits,
		clock:         options.Clock,
		clients:       lru.New[string](maxClients, lru.One[clients]),
	}
}

// Version changes when the credentials that the reference may use do. It is cheap.
func (a *Access) Version(ctx context.Context, ref reference.Reference) string {
	secret := ref.SecretRef()
	if secret == nil {
		set, err := a.own.Load()
		if err != nil {
			return err.Error()
		}
		return fingerprintOf(ref, set)
	}
	return a.SecretVersion(ctx, ref)
}

// Guest reads the credentials and makes the clients, if there are none yet.
func (a *Access) Guest(ctx context.Context, ref reference.Reference) (*Guest, error) {
	credential, err := a.credential(ctx, ref)
	if err != nil {
		return nil, err
	}
	to := ref.Base()
	host, _ := ref.Host()
	as := &Guest{Ref: ref, host: host, Credential: credential, Limits: a.limits}
	plain := to.Scheme == "http" || ref.PlainHTTP()
	name := fmt.Sprintf("%s %s %t %s", to.Scheme, host, plain, as.Credential.Fingerprint())
	if known, found := a.clients.Get(name); found {
		as.clients = known
		return as, nil
	}
	as.HTTP, err = egress.New(egress.Options{
		Origin: to,
		CA:     as.Credential.CA, Certificate: as.Credential.Certificate, Key: as.Credential.Key,
		PlainHTTP: plain, AllowLoopback: a.allowLoopback, UserAgent: a.userAgent, Clock: a.clock,
	})
	if err != nil {
		return nil, atCredentials(ref, failure.SourceUnauthorized, err)
	}
	as.Registry = newRegistryClient(as.HTTP, host, as.Credential)
	a.clients.Put(name, as.clients)
	return as, nil
}

// registryCredential is the credential as the registry client takes it.
func registryCredential(c credentials.Credential) auth.Credential {
	return auth.Credential{Username: c.Username, Password: c.Password, RefreshToken: c.IdentityToken, AccessToken: c.Token}
}
