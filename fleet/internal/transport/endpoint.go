// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// proxyOf returns what says which proxy leads to a server, nil if none does.
func proxyOf(e kubeconfig.Endpoint) (func(*http.Request) (*url.URL, error), error) {
	if e.Proxy == "" {
		return nil, nil
	}
	proxy, err := url.Parse(e.Proxy)
	return http.ProxyURL(proxy), err
}

func (t *Transport) tlsConfig(e kubeconfig.Endpoint) *tls.Config {
	config := &tls.Config{
		MinVersion:           tls.VersionTLS12,
		ServerName:           e.ServerName,
		InsecureSkipVerify:   e.Insecure, //nolint:gosec // only with AllowInsecureTLS
		GetClientCertificate: t.certificate,
	}
	if e.CA != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(e.CA))
	}
	return config
}

// trustedTransport leaves authentication, TLS and the choice of a proxy to client-go.
func trustedTransport(trusted *rest.Config, dial connrotation.DialFunc) (http.RoundTripper, error) {
	config := rest.CopyConfig(trusted)
	config.Dial = dial
	if config.Proxy == nil { // named, it keeps client-go from holding on to the transport for ever
		config.Proxy = http.ProxyFromEnvironment
	}
	return rest.TransportFor(config)
}

// certificate implements tls.Config.GetClientCertificate.
func (t *Transport) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if pair := t.credentials.Load().Certificate; pair != nil {
		return pair, nil
	}
	return &tls.Certificate{}, nil // none
}

// authorize adds the credentials that are sent in a header.
func authorize(request *http.Request, c *kubeconfig.Credentials) {
	switch {
	case c.Token != "":
		request.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "":
		request.SetBasicAuth(c.Username, c.Password)
	}
}
