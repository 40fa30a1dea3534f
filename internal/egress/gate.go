// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/address"
)

// maxRetryAfter bounds what a host may ask for.
const maxRetryAfter = time.Hour

// gate is what each request, and each one it is redirected to, passes.
type gate struct {
	origin    *url.URL
	plainHTTP bool
	loopback  bool // may be named
	userAgent string
	clock     clock.PassiveClock
	own       http.RoundTripper // shows the client's certificate
	other     http.RoundTripper

	mu        sync.Mutex
	notBefore map[string]pause // by host: those that asked to be left alone
}

// RoundTrip implements http.RoundTripper. Answers that no caller can use come
// back as faults; 401 and 404 are for the caller.
func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Host
	switch {
	case request.URL.Scheme == "https", request.URL.Scheme == "http" && g.plainHTTP:
	default:
		return nil, fault(Refused, "%s would be asked without TLS, which the object doesn't allow; set plainHTTP, or correct the address", host)
	}
	if HasDotSegments(request.URL.EscapedPath()) {
		return nil, fault(Refused, "the address at %s has a part that is \".\" or \"..\", or stands for it; correct the address", host)
	}
	if address.RefusedName(request.URL.Hostname(), g.loopback) {
		return nil, explain(request.Context(), host, address.ErrRefused)
	}
	if wished := g.pause(host); wished != nil {
		return nil, wished
	}
	if g.userAgent != "" {
		request = request.Clone(request.Context())
		request.Header.Set("User-Agent", g.userAgent)
	}
	transport := g.other
	if SameOrigin(g.origin, request.URL) {
		transport = g.own
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, explain(request.Context(), host, err)
	}
	if problem := g.judge(host, response); problem != nil {
		_ = response.Body.Close() // nothing was read from it
		problem.From = &url.URL{Scheme: request.URL.Scheme, Host: host}
		return nil, problem
	}
	response.Body = &body{response.Body, request.Context(), host}
	return response, nil
}

// pause is a host's wish to be left alone.
type pause struct {
	until time.Time
	why   string // of [throttled]
}

// judge returns what is wrong with an answer.
func (g *gate) judge(host string, response *http.Response) *Fault {
	code := response.StatusCode
	after, why := g.retryAfter(response.Header.Get("Retry-After")), tooManyRequests
	if limit := g.rateLimit(response); after == 0 && limit > 0 {
		after, why = limit, rateLimited
	}
	switch {
	case code == http.StatusTooManyRequests, (code == http.StatusServiceUnavailable || code == http.StatusForbidden) && after > 0:
		if after > 0 {
			g.mu.Lock()
			now := g.clock.Now()
			maps.DeleteFunc(g.notBefore, func(_ string, over pause) bool { return !over.until.After(now) }) // redirects may lead to ever new hosts
			g.notBefore[host] = pause{now.Add(after), why}
			g.mu.Unlock()
		}
		return throttled(host, why, after)
	case code == http.StatusForbidden:
		return answered(Unauthorized, host, code)
	case code == http.StatusProxyAuthRequired:
		return proxyAnswered(host, code)
	case code >= 400 && code != http.StatusUnauthorized && code != http.StatusNotFound:
		return answered(Unavailable, host, code)
	}
	return nil
}

// pause is the fault of a host that is to be left alone, nil if it isn't.
func (g *gate) pause(host string) *Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	wished, known := g.notBefore[host]
	if !known {
		return nil
	}
	if left := wished.until.Sub(g.clock.Now()); left > 0 {
		return throttled(host, wished.why, left)
	}
	delete(g.notBefore, host)
	return nil
}

// retryAfter reads the header, which is in seconds or a date.
func (g *gate) retryAfter(header string) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		after = date.Sub(g.clock.Now())
	}
	return min(max(after, 0), maxRetryAfter)
}
