// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"k8s.io/utils/clock"
	orasauth "oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/failure"
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
	// NotBefore is how old a document may be that was given to others; see [Documents.Get].
	NotBefore time.Time
	// Registry shows the credential to registries, and their token services.
	Registry *orasauth.Client

	http          *http.Client // shows no credential by itself; see [Client.authorize]
	counting      *Counting
	allowLoopback bool
	host          string
	clock         clock.PassiveClock
}

// Answer is what a host says.
type Answer struct {
	Data []byte
	Link string // to further ones
	// Validators are the conditions on which the host may say that it is still good.
	Validators http.Header
	// Same is set if the answer before is still good. Then there is no Data.
	Same bool
}

// File gets a file; nil if there is none.
func (c *Client) File(ctx context.Context, at *url.URL, accept, what string, most int64) ([]byte, error) {
	// Transport compression is refused: it would make other bytes of the same file.
	header := http.Header{"Accept-Encoding": {"identity"}}
	if accept != "" {
		header.Set("Accept", accept)
	}
	answer, err := c.get(ctx, at, header, what, most)
	return answer.Data, err
}

// get asks for something that isn't in a registry. A missing one is an answer, too.
func (c *Client) get(ctx context.Context, at *url.URL, header http.Header, what string, most int64) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return Answer{}, failure.New(failure.ArtifactInvalid, "the source's address makes no URL; correct it")
	}
	if header != nil {
		request.Header = header
	}
	response, err := c.Send(request)
	if err != nil {
		return Answer{}, err
	}
	defer Release(response.Body)
	switch response.StatusCode {
	case http.StatusOK:
		data, err := Read(response.Body, response.ContentLength, what, most)
		answer := Answer{Data: data, Link: response.Header.Get("Link"), Validators: http.Header{}}
		for validator, condition := range map[string]string{"Etag": "If-None-Match", "Last-Modified": "If-Modified-Since"} {
			if value := response.Header.Get(validator); value != "" {
				answer.Validators.Set(condition, value)
			}
		}
		return answer, err
	case http.StatusNotFound:
		return Answer{}, nil
	case http.StatusNotModified:
		return Answer{Same: true}, nil
	}
	return Answer{}, Unexpected(response)
}

// Unexpected returns the error of an answer that says neither yes nor no.
func Unexpected(response *http.Response) error {
	return failure.New(failure.SourceUnavailable, "%s answers %d %s, which isn't expected; correct the address",
		response.Request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
}

// Send sends a request with the credential. The answer isn't 401 Unauthorized.
func (c *Client) Send(request *http.Request) (*http.Response, error) {
	c.authorize(request)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if from := response.Request.URL; response.StatusCode == http.StatusUnauthorized {
		Release(response.Body)
		return nil, c.unauthorized(from, from.Host+" answers 401 Unauthorized")
	}
	return response, nil
}

// Dial connects to the source's host, for what isn't HTTP, until ctx ends. It counts as a request.
func (c *Client) Dial(ctx context.Context, hostPort string) (net.Conn, error) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GetConn != nil {
		trace.GetConn(hostPort)
	}
	connection, err := egress.Dial(ctx, hostPort, c.allowLoopback)
	if err == nil {
		context.AfterFunc(ctx, func() { Release(connection) })
	}
	return connection, err
}

// Count returns what the source's host sends as it counts as memory; see [Counting].
func (c *Client) Count(ctx context.Context, content io.Reader) io.ReadCloser {
	return c.counting.count(ctx, c.host, io.NopCloser(content), -1)
}

// Unauthorized returns the error of a host that refuses the credentials, or wants some.
func (c *Client) Unauthorized(said string) error { return c.unauthorized(c.Ref.Base(), said) }

// authorize adds the credential to a request, if it goes to the source's own host.
func (c *Client) authorize(request *http.Request) {
	if !egress.SameOrigin(c.Ref.Base(), request.URL) {
		return
	}
	switch {
	case c.Credential.Token != "" && c.Ref.Traits().Commits: // Git servers take tokens as passwords, of any name
		request.SetBasicAuth("x-access-token", c.Credential.Token)
	case c.Credential.Token != "":
		request.Header.Set("Authorization", "Bearer "+c.Credential.Token)
	case c.Credential.Username != "" || c.Credential.Password != "":
		request.SetBasicAuth(c.Credential.Username, c.Credential.Password)
	}
}

// Read reads the body of an answer, but no more of it than is accepted. Its length is negative if it isn't known.
func Read(content io.Reader, length int64, what string, most int64) ([]byte, error) {
	if length > most {
		return nil, failure.TooLarge(what, most)
	}
	data, err := io.ReadAll(io.LimitReader(content, most+1))
	if err == nil && int64(len(data)) > most {
		err = failure.TooLarge(what, most)
	}
	return data, err
}

// Release closes what was only read from: there is nothing left to fail.
func Release(closer io.Closer) { _ = closer.Close() }
