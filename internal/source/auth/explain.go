// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	orascontent "oras.land/oras-go/v2/content"
	orasauth "oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// ownSecret is the Secret that is mounted as the instance's own credentials, and
// ownSubject what errors about them are about.
const (
	ownSecret  = "chandler-credentials"
	ownSubject = "the provider instance's own Secret " + ownSecret
)

// Explain makes a [failure.Error] of an error. It leaves out the words of hosts and libraries, but
// for codes: the words may hold secrets, or be another text each time.
func (c *Client) Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		said := answer.URL.Host + " answers " + http.StatusText(answer.StatusCode)
		if answer.StatusCode == http.StatusUnauthorized { // of the registry, or its token service
			return c.unauthorized(c.Ref.Base(), said)
		}
		return failure.New(failure.SourceUnavailable, "%s, which isn't expected; correct the address", said)
	}
	switch {
	case errors.Is(err, orasauth.ErrBasicCredentialNotFound):
		return c.unauthorized(c.Ref.Base(), c.host+" wants to know who asks")
	case errors.Is(err, orascontent.ErrMismatchedDigest), errors.Is(err, orascontent.ErrTrailingData), errors.Is(err, orascontent.ErrInvalidDescriptorSize):
		return failure.New(failure.DigestMismatch, "what %s sends isn't the content with the digest that it promised; it is asked again", c.host)
	}
	fault := egress.Explain(ctx, c.host, err)
	switch {
	case fault == nil:
		return failure.New(failure.SourceUnavailable, "%s answers with what can't be used: it may be no registry, want username and password in place of a token, "+
			"or refer to a token service without TLS or at a private address; check the address, the credentials and the registry", c.host)
	case fault.Reason == failure.SourceUnauthorized && c.Ref.Traits().Registry: // or its token service
		return c.unauthorized(c.Ref.Base(), fault.Error())
	case fault.Reason == failure.SourceUnauthorized:
		return c.unauthorized(fault.From, fault.Error())
	}
	return &failure.Error{Reason: fault.Reason, Err: fault, RetryAfter: fault.RetryAfter}
}

// unauthorized says what credentials were shown, and where other ones may be put.
func (c *Client) unauthorized(by *url.URL, said string) *failure.Error {
	if own := c.Ref.Base(); by != nil && !egress.SameOrigin(own, by) {
		return failure.New(failure.SourceUnavailable, "%s, and gets no credentials: these are for %s://%s only, which refers to it. Have what is there open to everyone, or in the same place as the source",
			said, own.Scheme, own.Host)
	}
	var refused *failure.Error
	switch secret, none := c.Ref.SecretRef(), c.Credential.IsZero(); {
	case secret != nil && none:
		refused = failure.New(failure.SourceUnauthorized, "%s; Secret %s/%s has no credentials for %s: add username and password, token, or .dockerconfigjson; for ssh, identity", said, c.Ref.Namespace, secret.Name, c.host)
	case secret != nil:
		refused = failure.New(failure.SourceUnauthorized, "%s to the credentials of Secret %s/%s; correct them, or what they are allowed", said, c.Ref.Namespace, secret.Name)
	default:
		refused = failure.New(failure.SourceUnauthorized, "%s; name a Secret with credentials in its secretRef, or have those in the provider instance's own Secret %s corrected (%s)", said, ownSecret, ownKeys(c.Ref))
	}
	refused.Wait, refused.Err = true, &refusal{refused.Err, by, said}
	return refused
}

// refusal is how a host refused credentials, and which. References with the same credentials share it.
type refusal struct {
	error
	by   *url.URL
	said string
}

// inOwnWords returns an error that may have been explained to another reference: a refusal names its own Secret then.
func (c *Client) inOwnWords(err error) error {
	told, isTold := errors.AsType[*failure.Error](err)
	shared, isShared := errors.AsType[*refusal](err)
	if !isTold || !isShared {
		return err
	}
	own := c.unauthorized(shared.by, shared.said)
	own.Again, own.RetryAfter = told.Again, told.RetryAfter
	return own
}

// atCredentials returns an error about the credentials of the reference, not about the source.
func atCredentials(r reference.Reference, err error) *failure.Error {
	failed := &failure.Error{Reason: failure.SourceUnauthorized, Err: err, Subject: ownSubject, Wait: true}
	if known, ok := errors.AsType[*failure.Error](err); ok {
		failed.Err = known.Err
		if known.Reason != failure.ArtifactNotFound {
			failed.Reason = known.Reason
		}
	}
	if secret := r.SecretRef(); secret != nil {
		failed.Part = ".secretRef"
		failed.Subject = fmt.Sprintf("Secret %s/%s", r.Namespace, secret.Name)
	}
	return failed
}

// ownKeys returns where in the instance's own Secret the credentials for the reference's host are.
func ownKeys(r reference.Reference) string {
	host := r.RepositoryHost()
	switch {
	case r.Traits().AnyPath:
		return "config.json, for " + host + " with a path"
	case r.Base().Scheme == "http":
		return "config.json, or keys that start with " + credentials.KeyOf(host) + "., with " + credentials.KeyPlainHTTP + ` "true" among them`
	}
	return "config.json, or keys that start with " + credentials.KeyOf(host) + "."
}
