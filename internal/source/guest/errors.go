// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
)

// Word makes a [failure.Error] of what went wrong. What hosts and libraries say is left
// out, but for codes: it may hold secrets, or be another text each time.
func (g *Guest) Word(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var known *failure.Error
	if errors.As(err, &known) {
		return known
	}
	by := answeredBy(err)
	if asked := (tokenServiceError{}); errors.As(err, &asked) {
		by = g.Ref.Base() // the registry had it asked, with the credentials for the registry
	}
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		said := answer.URL.Host + " answers " + http.StatusText(answer.StatusCode)
		if answer.StatusCode == http.StatusUnauthorized {
			return g.Unauthorized(by, said)
		}
		return failure.New(failure.SourceUnavailable, "%s, which isn't expected; correct the address", said)
	}
	var service privateTokenService
	var inClear clearTokenService
	var moved movedTokenService
	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return g.Unauthorized(g.Ref.Base(), g.host+" wants to know who asks")
	case errors.Is(err, errPasswordWanted):
		return g.passwordWanted()
	case errors.As(err, &moved):
		return failure.New(failure.SourceUnavailable, "%s refers to a token service at %s, which redirects to %s, where no credentials are sent. "+
			"Have the registry name the token service by the address at which it answers", g.host, moved.from, moved.to)
	case errors.As(err, &inClear):
		return failure.New(failure.SourceUnavailable, "%s refers to a token service at %s without TLS, which isn't asked: what it is shown could be read on the way. "+
			"Have the registry name it by its address with https://", g.host, string(inClear))
	case errors.As(err, &service):
		return failure.New(failure.SourceUnavailable, "%s refers to a token service at %s, which is a private address of another host: it gets no credentials, whatever they are. "+
			"Have the registry name a token service under its own host name; the port may be another one", g.host, string(service))
	case errors.Is(err, orascontent.ErrMismatchedDigest), errors.Is(err, orascontent.ErrTrailingData), errors.Is(err, orascontent.ErrInvalidDescriptorSize):
		return failure.New(failure.DigestMismatch, "what %s sends isn't the content with the digest that it promised; it is asked again", g.host)
	}
	fault := egress.Explain(ctx, g.host, err)
	switch {
	case fault == nil:
		return failure.New(failure.SourceUnavailable, "%s answers with what can't be used: it may be no registry, have headers that contradict the content, "+
			"or refer to a token service without TLS or at a private address; correct the address, or have the registry mended", g.host)
	case fault.Kind == egress.Unauthorized:
		return g.Unauthorized(by, fault.Error())
	case fault.Kind == egress.Refused:
		return failure.New(failure.ArtifactRefused, "%w", fault)
	}
	unavailable := failure.New(failure.SourceUnavailable, "%w", fault)
	unavailable.RetryAfter = fault.RetryAfter
	return unavailable
}

// answeredBy is the host whose answer is the error; nil if none answered.
func answeredBy(err error) *url.URL {
	var answer *errcode.ErrorResponse
	var fault *egress.Fault
	switch {
	case errors.As(err, &answer):
		return answer.URL
	case errors.As(err, &fault):
		return fault.From
	}
	return nil
}

// Unauthorized says what credentials were shown, and where other ones may be put.
func (g *Guest) Unauthorized(by *url.URL, said string) *failure.Error {
	if own := g.Ref.Base(); by != nil && !egress.SameOrigin(own, by) {
		return failure.New(failure.SourceUnavailable, "%s, and gets no credentials: these are for %s://%s only, which refers to it. Have what is there open to everyone, or in the same place as the source",
			said, own.Scheme, own.Host)
	}
	add := "username and password, token, or .dockerconfigjson"
	if g.Ref.Chart.GitHub != nil {
		add = "token"
	}
	secret := g.Ref.SecretRef()
	var refused *failure.Error
	switch {
	case secret != nil && g.Credential.IsZero():
		refused = failure.New(failure.SourceUnauthorized, "%s; Secret %s/%s has no credentials for %s: add %s",
			said, g.Ref.Namespace, secret.Name, g.host, add)
	case secret != nil:
		refused = failure.New(failure.SourceUnauthorized, "%s to the credentials of Secret %s/%s; correct them, or what they are allowed",
			said, g.Ref.Namespace, secret.Name)
	case g.Credential.IsZero():
		refused = failure.New(failure.SourceUnauthorized, "%s; name a Secret with credentials in its secretRef, or have them added to the provider instance's own Secret %s (%s)%s",
			said, ownSecret, ownKeys(g.Ref), plainKey(g.Ref))
	default:
		refused = failure.New(failure.SourceUnauthorized, "%s to the provider instance's own credentials; have them corrected in its Secret %s, or name another Secret in its secretRef",
			said, ownSecret)
	}
	refused.Wait = true
	return refused
}

// passwordWanted is the error of a registry that takes username and password, while
// the credentials are a token, or half of both.
func (g *Guest) passwordWanted() *failure.Error {
	said, add, instead := " takes username and password only (Basic authentication), and not a token", "username and password", ", in place of what is there for it"
	if half := g.missingHalf(); half != "" {
		said, add, instead = " takes username and password (Basic authentication), and "+half+" is missing", "it", ""
	}
	secret := g.Ref.SecretRef()
	var refused *failure.Error
	switch {
	case secret != nil:
		refused = failure.New(failure.SourceUnauthorized, "%s; add %s to Secret %s/%s%s", g.host+said, add, g.Ref.Namespace, secret.Name, instead)
	default:
		refused = failure.New(failure.SourceUnauthorized, "%s; have both added to the provider instance's own Secret %s (%s), or name another Secret in its secretRef",
			g.host+said, ownSecret, ownKeys(g.Ref))
	}
	refused.Wait = true
	return refused
}

// missingHalf is the key that the credentials lack if they have the other one of username
// and password; "" if they have neither, or a token.
func (g *Guest) missingHalf() string {
	switch has := g.Credential; {
	case has.Token != "" || has.IdentityToken != "":
		return ""
	case has.Username != "" && has.Password == "":
		return credentials.KeyPassword
	case has.Password != "" && has.Username == "":
		return credentials.KeyUsername
	}
	return ""
}

// ownSecret is the Secret that is mounted as the instance's own credentials, and
// ownSubject what errors about them are about.
const (
	ownSecret  = "chandler-credentials"
	ownSubject = "the provider instance's own Secret " + ownSecret
)
