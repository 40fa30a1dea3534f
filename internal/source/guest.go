// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// guest is who visits a host for a reference.
type guest struct {
	clients
	ref        Reference
	host       string
	credential credentials.Credential
	limits     artifact.Limits
}

// get asks for something that isn't in a registry. A missing one is an answer, too.
func (g *guest) get(ctx context.Context, at *url.URL, header http.Header) (*http.Response, error) {
	return g.request(ctx, http.MethodGet, at, header)
}

// size asks how large something is, and with that, if this guest may have it. It
// is negative if the host doesn't tell.
func (g *guest) size(ctx context.Context, at *url.URL) (int64, error) {
	response, err := g.request(ctx, http.MethodHead, at, nil) //nolint:bodyclose // release closes it
	if err != nil {
		return -1, err
	}
	release(response.Body)
	if response.StatusCode != http.StatusOK {
		return -1, notPublished("there is nothing at this address")
	}
	return response.ContentLength, nil
}

func (g *guest) request(ctx context.Context, method string, at *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "the source's address makes no URL")
	}
	if header != nil {
		request.Header = header
	}
	g.authorize(request)
	response, err := g.http.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusNotModified:
		return response, nil
	case http.StatusUnauthorized:
		release(response.Body)
		return nil, g.unauthorized(response.Request.URL.Host + " answers 401 Unauthorized")
	}
	release(response.Body)
	return nil, failure.New(failure.SourceUnavailable, "%s answers %d %s, which isn't expected", response.Request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
}

// authorize adds the credential to a request, if it goes to the source's own host.
func (g *guest) authorize(request *http.Request) {
	if !egress.SameOrigin(g.ref.base(), request.URL) {
		return
	}
	switch {
	case g.credential.Token != "":
		request.Header.Set("Authorization", "Bearer "+g.credential.Token)
	case g.credential.Username != "" || g.credential.Password != "":
		request.SetBasicAuth(g.credential.Username, g.credential.Password)
	}
}

// word makes a [failure.Error] of what went wrong. What hosts and libraries say is left
// out, but for codes: it may hold secrets, or be another text each time.
func (g *guest) word(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var known *failure.Error
	if errors.As(err, &known) {
		return known
	}
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		said := answer.URL.Host + " answers " + http.StatusText(answer.StatusCode)
		if answer.StatusCode == http.StatusUnauthorized {
			return g.unauthorized(said)
		}
		return failure.New(failure.SourceUnavailable, "%s, which isn't expected", said)
	}
	var service privateTokenService
	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return g.unauthorized(g.host + " wants to know who asks")
	case errors.Is(err, errPasswordWanted):
		return g.passwordWanted()
	case errors.As(err, &service):
		return failure.New(failure.SourceUnavailable, "%s refers to a token service at %s, which is a private address of another host: it gets no credentials, whatever they are. "+
			"Have the registry name a token service under its own host name; the port may be another one", g.host, string(service))
	case errors.Is(err, orascontent.ErrMismatchedDigest), errors.Is(err, orascontent.ErrTrailingData), errors.Is(err, orascontent.ErrInvalidDescriptorSize):
		return failure.New(failure.DigestMismatch, "what %s sends isn't the content with the digest that it promised", g.host)
	}
	fault := egress.Explain(ctx, g.host, err)
	switch {
	case fault == nil:
		return failure.New(failure.SourceUnavailable, "%s answers with what can't be used: it may be no registry, have headers that contradict the content, "+
			"or refer to a token service without TLS or at a private address", g.host)
	case fault.Kind == egress.Unauthorized:
		return g.unauthorized(fault.Error())
	case fault.Kind == egress.Refused:
		return failure.New(failure.ArtifactRefused, "%w", fault)
	}
	unavailable := failure.New(failure.SourceUnavailable, "%w", fault)
	unavailable.RetryAfter = fault.RetryAfter
	return unavailable
}

// unauthorized says what credentials were shown, and where other ones may be put.
func (g *guest) unauthorized(said string) *failure.Error {
	add, own := "username and password, token, or .dockerconfigjson", "config.json, or KEY.username and KEY.password"
	if g.ref.Chart.GitHub != nil {
		add, own = "token", "KEY.token"
	}
	own = strings.ReplaceAll(own, "KEY", credentials.KeyOf(g.ref.repositoryHost()))
	secret := g.ref.secretRef()
	var refused *failure.Error
	switch {
	case g.ref.bound():
		refused = failure.New(failure.SourceUnauthorized, "%s", said) // the way out is told with the dependency
	case secret != nil && g.credential.IsZero():
		refused = failure.New(failure.SourceUnauthorized, "%s; Secret %s/%s has no credentials for %s: add %s",
			said, g.ref.Namespace, secret.Name, g.host, add)
	case secret != nil:
		refused = failure.New(failure.SourceUnauthorized, "%s to the credentials of Secret %s/%s; correct them, or what they are allowed",
			said, g.ref.Namespace, secret.Name)
	case g.credential.IsZero():
		refused = failure.New(failure.SourceUnauthorized, "%s; name a Secret with credentials in its secretRef, or have them added to the provider instance's own Secret %s (%s)",
			said, ownSecret, own)
	default:
		refused = failure.New(failure.SourceUnauthorized, "%s to the provider instance's own credentials; have them corrected in its Secret %s, or name another Secret in its secretRef",
			said, ownSecret)
	}
	refused.Wait = true
	return refused
}

// passwordWanted is the error of a registry that takes username and password, while
// the credentials are a token, or half of both.
func (g *guest) passwordWanted() *failure.Error {
	const said = "%s takes username and password only (Basic authentication), and not a token"
	secret := g.ref.secretRef()
	var refused *failure.Error
	switch {
	case g.ref.bound():
		refused = failure.New(failure.SourceUnauthorized, said, g.host) // the way out is told with the dependency
	case secret != nil:
		refused = failure.New(failure.SourceUnauthorized, said+"; add username and password to Secret %s/%s, in place of what is there for it", g.host, g.ref.Namespace, secret.Name)
	default:
		key := credentials.KeyOf(g.ref.repositoryHost())
		refused = failure.New(failure.SourceUnauthorized, said+"; have both added to the provider instance's own Secret %s (%s.username and %s.password), or name another Secret in its secretRef",
			g.host, ownSecret, key, key)
	}
	refused.Wait = true
	return refused
}

// ownSecret is the Secret that is mounted as the instance's own credentials.
const ownSecret = "chandler-credentials"
