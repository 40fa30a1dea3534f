// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"

	"golang.org/x/sync/singleflight"
	"oras.land/oras-go/v2/errdef"
	orasauth "oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
)

const (
	// tokenBytes has room for a thousand access tokens of usual length.
	tokenBytes = 4 << 20 // bytes
	// maxToken is how long a token may be: a longer one fits no header of usual servers.
	maxToken = 16 << 10 // bytes
	ofToken  = 256      // bytes, with the scopes
)

// tokens are the access tokens that registries gave, and by which scheme they are shown.
//
// Key: the client, the registry, and the scopes.
// Bound: tokenBytes bytes, and the budget.
// Lost with it: a token is asked for again.
type tokens struct {
	known *budget.Cache[tokenKey, token]
	calls singleflight.Group
}

type tokenKey struct{ client, registry, scopes string }

// token has no text where it only says by which scheme the registry wants to be shown tokens.
type token struct {
	scheme orasauth.Scheme
	text   string
}

func newTokens(memory *budget.Budget) *tokens {
	return &tokens{known: budget.NewCache[tokenKey](memory, tokenBytes, func(t token) int64 { return int64(len(t.text)) + ofToken })}
}

// tokensOf are the tokens of a client. It implements oras' interface of caches.
type tokensOf struct {
	*tokens
	client string
}

var _ orasauth.Cache = tokensOf{}

// schemeOnly are no scopes, but the key of a registry's scheme: tokens of the basic scheme have none.
const schemeOnly = "scheme"

// GetScheme implements orasauth.Cache.
func (t tokensOf) GetScheme(_ context.Context, registry string) (orasauth.Scheme, error) {
	is, found := t.known.Get(tokenKey{t.client, registry, schemeOnly})
	if !found {
		return orasauth.SchemeUnknown, errdef.ErrNotFound
	}
	return is.scheme, nil
}

// GetToken implements orasauth.Cache.
func (t tokensOf) GetToken(_ context.Context, registry string, scheme orasauth.Scheme, scopes string) (string, error) {
	is, found := t.known.Get(tokenKey{t.client, registry, scopes})
	if !found || is.scheme != scheme {
		return "", errdef.ErrNotFound
	}
	return is.text, nil
}

// Set implements orasauth.Cache. Those who want the same token wait for one request.
func (t tokensOf) Set(ctx context.Context, registry string, scheme orasauth.Scheme, scopes string, fetch func(context.Context) (string, error)) (string, error) {
	key := tokenKey{t.client, registry, scopes}
	text, err, _ := t.calls.Do(t.client+" "+registry+" "+scheme.String()+" "+scopes, func() (any, error) {
		text, err := fetch(ctx)
		if err == nil && len(text) > maxToken {
			err = failure.New(failure.SourceUnavailable, "%s, or its token service, gives an access token of %d bytes, at most %d are accepted; have it give shorter ones", registry, len(text), maxToken)
		}
		if err != nil {
			return "", err
		}
		of := budget.Tenant{Namespace: budget.TenantOf(ctx).Namespace}
		t.known.Put(of, tokenKey{t.client, registry, schemeOnly}, token{scheme: scheme})
		t.known.Put(of, key, token{scheme, text})
		return text, nil
	})
	return text.(string), err
}
