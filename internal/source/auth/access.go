// SPDX-License-Identifier: Apache-2.0

// Package auth makes the clients that ask other hosts, with the credentials that a reference
// may use: those of the Secret that it names, or else the instance's own.
package auth

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	orasauth "oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

const (
	// clientBytes has room for 64 clients that keep their connections.
	clientBytes = 4 << 20  // bytes
	ofClient    = 63 << 10 // bytes, with connections
)

// Options of [New].
type Options struct {
	// Objects reads Secrets.
	Objects *object.Reader
	// CredentialsDir has the instance's own credentials. It may be missing, and may change.
	CredentialsDir string
	// AllowLoopback lets hosts be this one.
	AllowLoopback bool
	// UserAgent of requests.
	UserAgent string
	// Limits of what is fetched.
	Limits artifact.Limits
	// Memory is where answers count, and what is kept of them. Nil counts nothing.
	Memory *budget.Budget
	// Clock of how long hosts want to be left alone.
	Clock clock.Clock
}

// Access makes clients, and keeps them with their connections for all who have the same
// credentials.
//
// Key: the host and the credential.
// Bound: clientBytes bytes, and the budget.
// Lost with it: connections are made again.
type Access struct {
	Options
	clients *budget.Cache[string, Client] // by host and credential, for no reference
	tokens  *tokens
}

// New returns the access to all hosts.
func New(options Options) *Access {
	return &Access{
		Options: options, tokens: newTokens(options.Memory),
		clients: budget.NewCache[string](options.Memory, clientBytes, func(Client) int64 { return ofClient }),
	}
}

// Identity says as whom the reference's host is asked. It takes no request, and is kept in memory
// only. The scope says where content comes from, and by whose Secret: who has the same one may have
// the same content. It is "" if that can't be told. The instance's own credentials are no part of
// it: they are the instance's as the cache on disk is.
func (a *Access) Identity(ctx context.Context, ref reference.Reference) (identity, scope string) {
	scope = ref.Source()
	if ref.Traits().Releases { // only the release itself tells that a digest is of its version
		scope += " release " + ref.Chart.Version
	}
	if ref.Traits().Commits { // what a commit doesn't change at a path stays
		scope = ref.WithVersion("").String()
	}
	if ref.SecretRef() == nil {
		own, err := a.credential(ctx, ref)
		if err != nil {
			return err.Error(), scope
		}
		return own.Fingerprint(), scope
	}
	version := a.Objects.Version(ctx, ref.Secret())
	if version == "" {
		return "", ""
	}
	return version, scope + " at " + version
}

// Ask reads the credentials, and calls what asks with a client, for the reference's namespace. Errors are explained.
func Ask[T any](ctx context.Context, a *Access, ref reference.Reference, call func(context.Context, *Client) (T, error)) (answer T, err error) {
	ctx = budget.WithTenant(ctx, budget.Tenant{Namespace: ref.Namespace})
	client, err := a.client(ctx, ref)
	if err != nil {
		return answer, err
	}
	answer, err = call(ctx, client)
	return answer, client.Explain(ctx, err)
}

// client makes a client with the credentials that the reference may use.
func (a *Access) client(ctx context.Context, ref reference.Reference) (*Client, error) {
	credential, err := a.credential(ctx, ref)
	if err != nil {
		return nil, err
	}
	to := ref.Base()
	host, _ := ref.Host()
	plain := to.Scheme == "http" || ref.PlainHTTP()
	name := fmt.Sprintf("%s %s %t %s", to.Scheme, host, plain, credential.Fingerprint())
	client, found := a.clients.Get(name)
	if !found {
		if client, err = a.connect(ref, name, host, plain, credential); err != nil {
			return nil, atCredentials(ref, err)
		}
		a.clients.Put(budget.Tenant{Namespace: ref.Namespace}, name, client)
	}
	client.Ref = ref
	return &client, nil
}

// connect makes a client of a name, which keeps its connections and tokens for all who have the same
// credentials.
func (a *Access) connect(ref reference.Reference, name, host string, plain bool, credential credentials.Credential) (Client, error) {
	client, err := egress.New(egress.Options{
		Origin: ref.Base(),
		CA:     credential.CA, Certificate: credential.Certificate, Key: credential.Key,
		PlainHTTP: plain, AllowLoopback: a.AllowLoopback, UserAgent: a.UserAgent, Clock: a.Clock,
	})
	if err != nil {
		return Client{}, err
	}
	counting := &Counting{
		RoundTripper: client.Transport, Memory: a.Memory, Most: max(a.Limits.IndexBytes, a.Limits.ArchiveBytes),
	}
	client.Transport = counting
	return Client{
		Credential: credential, Limits: a.Limits,
		Registry: &orasauth.Client{
			Client: client,
			Cache:  tokensOf{a.tokens, name},
			Credential: orasauth.StaticCredential(host, orasauth.Credential{
				Username: credential.Username, Password: credential.Password, RefreshToken: credential.IdentityToken, AccessToken: credential.Token,
			}),
		},
		http: client, counting: counting, allowLoopback: a.AllowLoopback, host: host, clock: a.Clock,
	}, nil
}

// credential returns what the reference may show its host: of the Secret that it names, or else
// of the instance's own credentials.
func (a *Access) credential(ctx context.Context, ref reference.Reference) (credentials.Credential, error) {
	set, err := a.set(ctx, ref)
	if err != nil {
		return credentials.Credential{}, atCredentials(ref, err)
	}
	host, path := ref.Host()
	at := credentials.Host{Name: host, Path: path, PlainHTTP: ref.Base().Scheme == "http", AnyPath: ref.Traits().AnyPath}
	found, err := set.For(at)
	if repository := ref.RepositoryHost(); repository != host && err == nil {
		usual := found
		at.Name = repository
		found, err = set.For(at)
		found = found.OrElse(usual)
	}
	if err != nil {
		return credentials.Credential{}, atCredentials(ref, err)
	}
	return found, nil
}

// set reads the credentials that the reference may use.
func (a *Access) set(ctx context.Context, ref reference.Reference) (credentials.Set, error) {
	if ref.SecretRef() == nil {
		return credentials.Directory(a.CredentialsDir).Load()
	}
	data, err := a.Objects.Secret(ctx, ref.Secret())
	if err != nil {
		return credentials.Set{}, err
	}
	return credentials.FromSecret(data)
}
