// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/http/httpproxy"
)

// proxies are those of the environment. They are the administrator's choice, so they may be at
// any address.
type proxies struct {
	find  func(*url.URL) (*url.URL, error)
	tls   *tls.Config // what those with TLS are shown
	known sync.Map    // by address, whether it has TLS: those that were found
}

func newProxies(config *tls.Config) *proxies {
	return &proxies{find: httpproxy.FromEnvironment().ProxyFunc(), tls: config}
}

// of is the proxy for a URL, nil if there is none.
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
