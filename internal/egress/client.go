// SPDX-License-Identifier: Apache-2.0

// Package egress makes HTTP clients for hosts that the users of a namespace name:
// registries and repositories. Such a host may be hostile, and so may be the one
// who named it. A client
//
//   - reaches no address behind which are credentials of the node, or this pod,
//   - gives the caller's credentials to the one host they are for: a redirect
//     elsewhere goes without Authorization and without the client's certificate,
//     and no proxy sees that,
//   - follows few redirects, and none from TLS to plain HTTP,
//   - tells for how long a host asks to be left alone,
//   - says what went wrong in constant words, without a part of any URL but its
//     host: these may hold secrets, and messages mustn't change from one attempt to
//     the next.
//
// How long a request and its body may take is bounded by the request's context.
package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/address"
	"github.com/cluster-chandler/chandler/internal/failure"
)

const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	headerTimeout = 20 * time.Second
	idleTimeout   = 30 * time.Second
	maxHeader     = 256 << 10 // bytes of an answer's header
	maxRedirects  = 5
	maxPerHost    = 8 // connections, of one client
)

// Options of New.
type Options struct {
	// Origin is the URL whose scheme, host and port the credentials are for.
	Origin *url.URL
	// CA are certificates in PEM to trust beside the system's. Not secret: they
	// count for redirects, too.
	CA []byte
	// Certificate and Key in PEM are shown to Origin alone. Both or none.
	Certificate, Key []byte
	// PlainHTTP allows requests without TLS.
	PlainHTTP bool
	// AllowLoopback allows addresses of this host.
	AllowLoopback bool
	// UserAgent of the requests.
	UserAgent string
	// Clock tells for how long a host asks to be left alone.
	Clock clock.PassiveClock
}

// New makes a client. Its errors are, or wrap, a [*Fault]; see [Explain]. The errors of New itself
// are about the credentials, and don't quote them.
func New(options Options) (*http.Client, error) {
	shared := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(options.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(options.CA) {
			return nil, errors.New("ca.crt holds no certificate in PEM; correct it")
		}
		shared.RootCAs = pool
	}
	own := shared.Clone()
	if len(options.Certificate) > 0 || len(options.Key) > 0 {
		certificate, err := tls.X509KeyPair(options.Certificate, options.Key)
		if err != nil {
			return nil, errors.New("tls.crt and tls.key are no certificate in PEM and its key; correct both")
		}
		own.Certificates = []tls.Certificate{certificate}
	}
	options.Key = nil // nobody needs it any more
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &guardedTransport{
			Options: options,
			own:     newTransport(own, shared, options.AllowLoopback),
			other:   newTransport(shared, shared, options.AllowLoopback),
		},
	}, nil
}

// newTransport makes one that shows hosts what config has, and proxies what toProxy has.
func newTransport(config, toProxy *tls.Config, allowLoopback bool) *http.Transport {
	proxies := &proxies{find: httpproxy.FromEnvironment().ProxyFunc(), tls: toProxy}
	direct := &net.Dialer{Timeout: dialTimeout, Control: address.DialControl(allowLoopback)}
	return &http.Transport{
		Proxy: func(request *http.Request) (*url.URL, error) { return proxies.of(request.URL) },
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if connection, err := proxies.dial(ctx, network, address); connection != nil || err != nil {
				return connection, err
			}
			return direct.DialContext(ctx, network, address)
		},
		OnProxyConnectResponse: evaluateConnect,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        maxPerHost,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
	}
}

// Dial connects to a host and port without a proxy, for what isn't HTTP. Its errors are, or wrap, a [*Fault].
func Dial(ctx context.Context, hostPort string, allowLoopback bool) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(hostPort)
	if address.RefusedName(host, allowLoopback) {
		return nil, explain(ctx, hostPort, address.ErrRefused)
	}
	connection, err := (&net.Dialer{Timeout: dialTimeout, Control: address.DialControl(allowLoopback)}).DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, explain(ctx, hostPort, err)
	}
	return connection, nil
}

// hostPort returns the address that is dialled for a URL.
func hostPort(u *url.URL) string {
	if u == nil {
		return ""
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[strings.ToLower(u.Scheme)], "80")
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// SameOrigin reports whether credentials for one URL may go to the other.
func SameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && hostPort(a) == hostPort(b)
}

// checkRedirect lets few redirects pass, none from TLS to plain HTTP, and takes the
// credentials off once the chain has left the host it began at. (net/http keeps them
// for other ports and for subdomains of a host.)
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fault(failure.SourceUnavailable, "%s redirects more than %d times; correct the address", via[0].URL.Host, maxRedirects)
	}
	if request.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https" {
		return fault(failure.ArtifactRefused, "%s redirects to %s without TLS, which isn't followed; correct the address", via[len(via)-1].URL.Host, request.URL.Host)
	}
	for _, hop := range append(via[1:len(via):len(via)], request) {
		if !SameOrigin(via[0].URL, hop.URL) {
			for _, header := range []string{"Authorization", "Cookie", "Referer"} {
				request.Header.Del(header)
			}
		}
	}
	return nil
}

// proxies are those of the environment. They are the administrator's choice, so they may be at
// any address.
type proxies struct {
	find  func(*url.URL) (*url.URL, error)
	tls   *tls.Config // what those with TLS are shown
	known sync.Map    // by address, whether it has TLS: those that were found
}

// of returns the proxy for a URL, nil if there is none.
//
// net/http would show a proxy with TLS the certificate that is for the host behind it.
// So it is told of one without, and the TLS comes with the connection.
func (p *proxies) of(u *url.URL) (*url.URL, error) {
	at, err := p.find(u)
	if err != nil || at == nil {
		return at, err
	}
	address, secure := hostPort(at), strings.EqualFold(at.Scheme, "https")
	p.known.Store(address, secure)
	if !secure {
		return at, nil
	}
	told := *at
	told.Scheme, told.Host = "http", address
	return &told, nil
}

// dial connects to the proxy at an address; nil if there is none.
func (p *proxies) dial(ctx context.Context, network, address string) (net.Conn, error) {
	secure, known := p.known.Load(strings.ToLower(address))
	if !known {
		return nil, nil //nolint:nilnil // it is no proxy's
	}
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil || !secure.(bool) {
		return connection, err
	}
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	config := p.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address)
	secured := tls.Client(connection, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = connection.Close() // nothing was said on it
		return nil, err
	}
	return secured, nil
}
