// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
	orasauth "oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Client asks one host for a reference. Its errors are explained by [Client.Explain].
type Client struct {
	// Ref is what is asked for.
	Ref reference.Reference
	// Credential is what the host may be shown.
	Credential credentials.Credential
	// Limits of what is taken from it.
	Limits artifact.Limits
	// NotBefore is how old an answer may be that was given to others; see [Client.Fresh].
	NotBefore time.Time
	// HTTP shows no credential by itself; see [Client.Authorize].
	HTTP *http.Client
	// API is as HTTP, and asks with the validators of the answer before (ETag, Last-Modified).
	API *http.Client
	// Registry shows the credential to registries, and their token services.
	Registry *orasauth.Client

	host    string
	clock   clock.PassiveClock
	answers *semaphore.Weighted
}

// Fresh returns how old an answer may be that tells which versions there are: a moment, unless
// the caller says otherwise.
func (c *Client) Fresh() time.Time {
	const moment = 30 * time.Second
	if usual := c.clock.Now().Add(-moment); usual.After(c.NotBefore) {
		return usual
	}
	return c.NotBefore
}

// File gets a file; nil if there is none.
func (c *Client) File(ctx context.Context, at *url.URL, accept, what string, most int64) ([]byte, error) {
	// Transport compression is refused: it would make other bytes of the same file.
	header := http.Header{"Accept-Encoding": {"identity"}}
	if accept != "" {
		header.Set("Accept", accept)
	}
	response, err := c.get(ctx, c.HTTP, at, header)
	if err != nil {
		return nil, err
	}
	defer Release(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, nil
	}
	return c.Read(ctx, response.Body, response.ContentLength, what, most)
}

// Document gets a file whose answer before is used if the host says that it is still good;
// nil if there is none.
func (c *Client) Document(ctx context.Context, at *url.URL, what string, most int64) ([]byte, error) {
	response, err := c.get(ctx, c.API, at, http.Header{})
	if err != nil {
		return nil, err
	}
	defer Release(response.Body)
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, nil
	case response.ContentLength > most: // it is at hand
		return nil, failure.TooLarge(what, most)
	}
	return io.ReadAll(response.Body)
}

// get asks for something that isn't in a registry. A missing one is an answer, too.
func (c *Client) get(ctx context.Context, with *http.Client, at *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "the source's address makes no URL; correct it")
	}
	request.Header = header
	c.Authorize(request)
	response, err := with.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusNotFound:
		return response, nil
	}
	Release(response.Body)
	return nil, c.Unexpected(response)
}

// Unexpected is the error of an answer that has no content.
func (c *Client) Unexpected(response *http.Response) error {
	from := response.Request.URL
	if response.StatusCode == http.StatusUnauthorized {
		return c.unauthorized(from, from.Host+" answers 401 Unauthorized")
	}
	return failure.New(failure.SourceUnavailable, "%s answers %d %s, which isn't expected; correct the address", from.Host, response.StatusCode, http.StatusText(response.StatusCode))
}

// Authorize adds the credential to a request, if it goes to the source's own host.
func (c *Client) Authorize(request *http.Request) {
	if !egress.SameOrigin(c.Ref.Base(), request.URL) {
		return
	}
	switch {
	case c.Credential.Token != "":
		request.Header.Set("Authorization", "Bearer "+c.Credential.Token)
	case c.Credential.Username != "" || c.Credential.Password != "":
		request.SetBasicAuth(c.Credential.Username, c.Credential.Password)
	}
}

// Read reads the body of an answer, but no more of it than is accepted. Its length is
// negative if it isn't known.
func (c *Client) Read(ctx context.Context, body io.Reader, length int64, what string, most int64) ([]byte, error) {
	return read(ctx, c.answers, body, length, what, most)
}

// read reads an answer. All that are read at the same time share a bound on memory.
func read(ctx context.Context, answers *semaphore.Weighted, body io.Reader, length int64, what string, most int64) ([]byte, error) {
	if length > most {
		return nil, failure.TooLarge(what, most)
	}
	takes := most
	if length >= 0 {
		takes = length
	}
	takes = min(takes, answersBytes)
	if err := answers.Acquire(ctx, takes); err != nil {
		return nil, err
	}
	defer answers.Release(takes)
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, failure.TooLarge(what, most)
	}
	return data, nil
}

// Release closes what was only read from: there is nothing left to fail.
func Release(closer io.Closer) { _ = closer.Close() }
