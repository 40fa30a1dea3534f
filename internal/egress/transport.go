// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/fleet/address"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// maxRetryAfter bounds what a host may ask for.
const maxRetryAfter = time.Hour

// guardedTransport checks each request, and each one it is redirected to.
type guardedTransport struct {
	Options
	own   http.RoundTripper // shows the client's certificate
	other http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Answers that no caller can use come
// back as faults; 401 and 404 are for the caller.
func (g *guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Host
	if request.URL.Scheme != "https" && (request.URL.Scheme != "http" || !g.PlainHTTP) {
		return nil, fault(failure.ArtifactRefused, "%s would be asked without TLS, which the object doesn't allow; set plainHTTP, or correct the address", host)
	}
	if HasDotSegments(request.URL.EscapedPath()) {
		return nil, fault(failure.ArtifactRefused, "the address at %s has a part that is \".\" or \"..\", or stands for it; correct the address", host)
	}
	if address.RefusedName(request.URL.Hostname(), g.AllowLoopback) {
		return nil, explain(request.Context(), host, address.ErrRefused)
	}
	if g.UserAgent != "" {
		request = request.Clone(request.Context())
		request.Header.Set("User-Agent", g.UserAgent)
	}
	transport := g.other
	if SameOrigin(g.Origin, request.URL) {
		transport = g.own
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, explain(request.Context(), host, err)
	}
	if problem := g.evaluate(host, response); problem != nil {
		_ = response.Body.Close() // nothing was read from it
		problem.From = &url.URL{Scheme: request.URL.Scheme, Host: host}
		return nil, problem
	}
	response.Body = &body{response.Body, request.Context(), host}
	return response, nil
}

// evaluate returns what is wrong with an answer.
func (g *guardedTransport) evaluate(host string, response *http.Response) *Fault {
	code := response.StatusCode
	after := g.retryAfter(response.Header)
	switch {
	case code == http.StatusTooManyRequests, (code == http.StatusServiceUnavailable || code == http.StatusForbidden) && after > 0:
		busy := fault(failure.SourceUnavailable, "%s asks to be left alone for a while (429 Too Many Requests, Retry-After, or a rate limit); it is asked again then", host)
		busy.RetryAfter = after
		return busy
	case code == http.StatusForbidden:
		return answered(failure.SourceUnauthorized, host, code)
	case code == http.StatusProxyAuthRequired:
		return ofProxy(host, "answers "+statusOf(code))
	case code >= 400 && code != http.StatusUnauthorized && code != http.StatusNotFound:
		return answered(failure.SourceUnavailable, host, code)
	}
	return nil
}

// retryAfter returns for how long a host asks to be left alone: in seconds, or until a date.
// GitHub, and those that do as it does, tell when the limit of these credentials is lifted.
func (g *guardedTransport) retryAfter(header http.Header) time.Duration {
	var after time.Duration
	wished := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(wished, 10, 32); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(wished); err == nil {
		after = date.Sub(g.Clock.Now())
	} else if reset, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64); err == nil && header.Get("X-RateLimit-Remaining") == "0" {
		after = min(max(time.Unix(reset, 0).Sub(g.Clock.Now()), 0), maxRetryAfter-time.Second) + time.Second // it is cut off to seconds
	}
	return min(max(after, 0), maxRetryAfter)
}

// HasDotSegments reports whether some server may take a part of the path for "." or "..",
// also where it is encoded: it leads elsewhere than it says.
func HasDotSegments(path string) bool {
	for range 3 { // encoded twice, too
		segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
		if slices.ContainsFunc(segments, func(segment string) bool {
			name, _, _ := strings.Cut(segment, ";") // of parameters
			return name == "." || name == ".."
		}) {
			return true
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return false
		}
		path = decoded
	}
	return false
}

// body is an answer's, whose errors are faults: those of HTTP/2 can't be told from
// those of who reads it otherwise.
type body struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // of the request that it answers
	host string
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, explain(b.ctx, b.host, err)
}
