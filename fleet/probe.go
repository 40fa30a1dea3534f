// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/util/connrotation"
)

// prober asks a server for its version: the cheapest request that shows that a
// Kubernetes API server is there and takes the credentials. It has no part in
// the rate limit, so a busy cluster doesn't look dead.
type prober struct {
	server string
	agent  string
	round  http.RoundTripper
}

// probe returns the Kubernetes version, or what is wrong with the subject. The
// deadline is that of the context.
func (p *prober) probe(ctx context.Context, s subject) (string, *Fault) {
	progress := &trace{}
	ctx = context.WithValue(ctx, traceKey{}, progress)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { progress.secured.Store(err == nil) },
		GotConn: func(info httptrace.GotConnInfo) {
			progress.dialled.Store(true)
			progress.secured.Store(true)
			if info.Reused {
				progress.answered.Store(true)
			}
		},
	})
	response, err := p.get(ctx, "/version", "application/json")
	if err != nil {
		return "", s.networkFault(ctx, err, progress)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", s.statusFault(response.StatusCode)
	}
	body, err := io.ReadAll(response.Body)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return "", s.fault(limit.Reason, "can't be used: %s; check the address in %s", limit.Message, s.origin)
	}
	if err != nil {
		return "", s.networkFault(ctx, err, progress)
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil || !plausible.MatchString(info.GitVersion) {
		return "", s.fault(ReasonProbeFailed, "answers, but not as a Kubernetes API server; check the address in %s", s.origin)
	}
	return info.GitVersion, nil
}

// get asks for a path. The round tripper is used directly: a probe follows no redirect.
func (p *prober) get(ctx context.Context, path, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", p.agent)
	request.Header.Set("Accept", accept)
	return p.round.RoundTrip(request)
}

// plausible keeps what a hostile server calls its version out of status and logs.
var plausible = regexp.MustCompile(`^v[0-9a-zA-Z.+_-]{1,63}$`)

// statusFault explains an HTTP status other than 200.
func (s subject) statusFault(code int) *Fault {
	switch code {
	case http.StatusUnauthorized:
		return s.fault(ReasonUnauthorized, "does not accept the credentials in %s; they may have expired: renew them there", s.origin)
	case http.StatusForbidden:
		return s.fault(ReasonForbidden, "does not let the user in %s read /version; bind it to the ClusterRole system:public-info-viewer", s.origin)
	default:
		return s.fault(ReasonProbeFailed, "answers GET /version with HTTP status %d; check the API server and what is in front of it", code)
	}
}

// subject is what a fault is about.
type subject struct {
	host   string // host:port of the server
	origin string // where its kubeconfig is kept
}

func (s subject) fault(reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, Message: s.host + " " + fmt.Sprintf(format, args...)}
}

// watchedConn is a TCP connection whose end is noticed. HTTP closes it once the server, or the
// network, has ended it.
type watchedConn struct {
	net.Conn
	transport *transport
}

// Close implements io.Closer.
func (c *watchedConn) Close() error {
	if !c.transport.closed.Load() {
		c.transport.unanswered()
	}
	return c.Conn.Close()
}

// traced makes a dialer note in the context's trace how far it came.
func traced(dial connrotation.DialFunc) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		trace, ok := ctx.Value(traceKey{}).(*trace)
		if err != nil || !ok {
			return conn, err
		}
		trace.dialled.Store(true)
		return &tracedConn{Conn: conn, trace: trace}, nil
	}
}

type traceKey struct{}

// trace is how far an attempt came before its deadline.
type trace struct{ dialled, answered, secured atomic.Bool }

// tracedConn notes the first byte that the server sends.
type tracedConn struct {
	net.Conn
	trace *trace
}

func (c *tracedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.trace.answered.Store(true)
	}
	return n, err
}
