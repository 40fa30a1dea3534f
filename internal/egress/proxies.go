// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxies are those of the environment.
type proxies struct {
	find  func(*url.URL) (*url.URL, error)
	known []proxy
}

// proxy is the administrator's choice, so it may be at any address.
type proxy struct {
	address string
	tls     *tls.Config // nil: it is spoken to without TLS
}

// findProxies reads the environment. Proxies with TLS are shown what config has.
func findProxies(config *tls.Config) proxies {
	environment := httpproxy.FromEnvironment()
	found := proxies{find: environment.ProxyFunc()}
	for _, written := range []string{environment.HTTPSProxy, environment.HTTPProxy} {
		at := parseProxy(written)
		if at == nil {
			continue
		}
		known := proxy{address: hostPort(at)}
		if strings.EqualFold(at.Scheme, "https") {
			known.tls = config.Clone()
			known.tls.ServerName = at.Hostname()
		}
		found.known = append(found.known, known)
	}
	return found
}

// of is the proxy for a URL, nil if there is none.
//
// net/http would show a proxy with TLS the certificate that is for the host behind it.
// So it is told of one without, and the TLS comes with the connection.
func (p proxies) of(u *url.URL) (*url.URL, error) {
	at, err := p.find(u)
	if err != nil || at == nil || !strings.EqualFold(at.Scheme, "https") {
		return at, err
	}
	told := *at
	told.Scheme, told.Host = "http", hostPort(at)
	return &told, nil
}

// at is the proxy at an address, nil if there is none.
func (p proxies) at(address string) *proxy {
	for i := range p.known {
		if p.known[i].address == strings.ToLower(address) {
			return &p.known[i]
		}
	}
	return nil
}

func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil || p.tls == nil {
		return connection, err
	}
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	secured := tls.Client(connection, p.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = connection.Close() // nothing was said on it
		return nil, err
	}
	return secured, nil
}

// parseProxy reads a proxy's address as httpproxy does: the scheme may be missing.
func parseProxy(proxy string) *url.URL {
	if proxy == "" {
		return nil
	}
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	parsed, err := url.Parse(proxy)
	if err != nil {
		return nil
	}
	return parsed
}
