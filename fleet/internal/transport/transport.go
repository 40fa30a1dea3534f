// SPDX-License-Identifier: Apache-2.0

// Package transport has the TCP connections to an API server, and says why one doesn't answer.
package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/address"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

const (
	// keepAlive is the time between TCP keep-alives, and pingAfter the silence
	// after which an HTTP/2 connection is pinged. A connection that doesn't
	// answer for pingTimeout is closed, with every watch on it.
	keepAlive, pingAfter, pingTimeout = 30 * time.Second, 30 * time.Second, 15 * time.Second
	idleTimeout                       = 90 * time.Second
	// watchTimeout ends a watch that the server doesn't end by itself: so long after the
	// time that was asked for.
	watchTimeout = 5 * time.Minute
)

// ErrForeignHost is returned instead of following a redirect away from the
// server that the kubeconfig names: credentials stay where they belong.
var ErrForeignHost = errors.New("refusing a request to another host than the kubeconfig names")

// ErrDisconnected is the end of each request on a connection that was closed. It isn't
// net.ErrClosed, after which client-go tries again.
var ErrDisconnected = errors.New("the cluster was disconnected")

// Options of a Transport. All are set.
type Options struct {
	Kubeconfig    *kubeconfig.Config
	UserAgent     string // of probes; clients have their own
	AllowLoopback bool
	// ConnectTimeout bounds the TLS handshake, HeaderTimeout the beginning of an answer, and ListTimeout a
	// request that isn't a watch, with the reading of its answer.
	ConnectTimeout, HeaderTimeout, ListTimeout time.Duration
	// Timeout is that of the clients' requests. The server is told four fifths of it.
	Timeout time.Duration
	Limits  limits.Limits
	// Memory is where the answers count, for the Tenant.
	Memory *budget.Budget
	Tenant budget.Tenant
	Clock  clock.PassiveClock
	// Unauthorized is called when the server answers 401.
	Unauthorized func()
	// Unanswered is called when a request gets no answer, unless its caller has given it up. It
	// is also called when the server ends a TCP connection, as an API server does that is
	// replaced by a newer one.
	Unanswered func()
}

// Transport is one set of TCP connections to an API server. It sends no
// request, and so no credential, anywhere else.
type Transport struct {
	Options // without the Kubeconfig
	server  *url.URL
	// credentials can be swapped while requests are under way.
	credentials atomic.Pointer[kubeconfig.Credentials]
	base        http.RoundTripper
	dialer      *connrotation.Dialer
	bounds      *answer.Bounds
	closed      atomic.Bool // no request is sent any more
}

// New returns a Transport that connects to nothing yet.
func New(o Options) (*Transport, error) {
	k := o.Kubeconfig
	server, err := url.Parse(k.Endpoint.Server)
	if err != nil {
		return nil, err
	}
	net := &net.Dialer{KeepAlive: keepAlive}
	proxy, err := proxyOf(k.Endpoint)
	if err != nil {
		return nil, err
	}
	if k.Trusted == nil && proxy == nil { // nobody but the proxy is dialled otherwise, which an administrator chose
		net.Control = address.DialControl(o.AllowLoopback)
	}
	dial := net.DialContext
	if k.Trusted != nil && k.Trusted.Dial != nil {
		dial = k.Trusted.Dial
	}
	t := &Transport{Options: o, server: server, dialer: connrotation.NewDialer(dial), bounds: answer.NewBounds(o.Limits, o.Clock, o.Memory, o.Tenant)}
	t.Kubeconfig = nil // others may take the place of its credentials
	t.credentials.Store(&k.Credentials)
	if k.Trusted != nil {
		t.base, err = trustedTransport(k.Trusted, t.dial)
		return t, err
	}
	// The environment names no proxy: one would hide the address from the check.
	t.base = &http.Transport{
		Proxy:               proxy,
		DialContext:         t.dial,
		TLSClientConfig:     t.tlsConfig(k.Endpoint),
		TLSHandshakeTimeout: o.ConnectTimeout,
		// A watch has no other deadline before its first event.
		ResponseHeaderTimeout: o.HeaderTimeout,
		IdleConnTimeout:       idleTimeout,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: answer.Window},
		// A server can't make the manager hold large headers.
		MaxResponseHeaderBytes: 64 << 10,
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != t.server.Scheme || !strings.EqualFold(request.URL.Host, t.server.Host) {
		return nil, ErrForeignHost
	}
	if t.closed.Load() {
		return nil, ErrDisconnected
	}
	asked, timeout := answer.Of(request, t.server.Path), t.ListTimeout
	if asked == answer.Watch {
		asked, _ := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
		timeout = time.Duration(asked)*time.Second + watchTimeout
	}
	ctx, cancel := context.WithTimeout(request.Context(), timeout)
	request = request.Clone(ctx)
	authorize(request, t.credentials.Load())
	if asked != answer.Watch {
		t.bound(request.URL)
	}
	body, err := t.bounds.Begin(request, asked)
	if err != nil {
		cancel()
		return nil, err
	}
	countRequest(request)
	response, err := t.base.RoundTrip(request)
	if err != nil {
		body.End()
		if !errors.Is(request.Context().Err(), context.Canceled) && !t.closed.Load() {
			t.Unanswered()
		}
		cancel()
		return nil, err
	}
	if response.StatusCode == http.StatusUnauthorized {
		t.Unauthorized()
	}
	response.Body = Cancelling(response.Body, cancel)
	body.Bound(response)
	return response, nil
}

// Cancelling returns a body that ends the context of its request once it was read.
func Cancelling(body io.ReadCloser, cancel func()) io.ReadCloser {
	return &cancelling{ReadCloser: body, cancel: cancel}
}

type cancelling struct {
	io.ReadCloser
	cancel func()
}

// Close implements io.Closer.
func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// dial refuses a TCP connection that is made while the transport is shut: it would outlive that.
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := t.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if t.closed.Load() {
		_ = conn.Close()
		return nil, ErrDisconnected
	}
	of, _ := ctx.Value(traceKey{}).(*trace)
	if of != nil {
		of.dialled.Store(true)
	}
	return &watchedConn{Conn: conn, transport: t, trace: of}, nil
}

// bound has the server give up a request before the client does, so that the server says
// why. A webhook that hangs isn't a cluster that doesn't answer. Client-go itself sends
// the server the client's own timeout.
func (t *Transport) bound(request *url.URL) {
	query := request.Query()
	timeout, err := time.ParseDuration(query.Get("timeout"))
	if longest := t.Timeout / 5 * 4; err == nil && timeout > longest {
		query.Set("timeout", longest.String())
		request.RawQuery = query.Encode()
	}
}

// CancelRequest is what client-go looks for when a request times out. Its
// context, which the copy made by RoundTrip shares, has ended it already.
func (t *Transport) CancelRequest(*http.Request) {}

// Server returns the address of the server, which nobody changes.
func (t *Transport) Server() *url.URL { return t.server }

// Swap replaces the credentials. A TLS connection keeps its client certificate, so with a new one the
// connections are opened again.
func (t *Transport) Swap(c *kubeconfig.Credentials) {
	old := t.credentials.Swap(c)
	if old.Cert != c.Cert || old.Key != c.Key {
		t.Close()
	}
}

// Shut closes the transport for good.
func (t *Transport) Shut() {
	t.closed.Store(true)
	t.Close()
}

// Close ends every connection, and with them all that waits for an answer.
func (t *Transport) Close() {
	t.dialer.CloseAll()
	if base, ok := t.base.(*http.Transport); ok {
		base.CloseIdleConnections()
	}
}
