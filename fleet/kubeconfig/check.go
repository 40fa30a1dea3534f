// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-chandler/chandler/fleet/address"
)

const (
	// maxSize bounds a kubeconfig, in bytes. Cluster API's have about
	// 6 KiB; the bound also keeps the time to parse a hostile one short.
	maxSize = 256 << 10
	// maxKeySize bounds a PEM encoded client key, in bytes: enough for RSA with
	// 16384 bits. Checking much larger ones takes seconds.
	maxKeySize = 16 << 10
	// maxDepth bounds the nesting of the YAML: a kubeconfig has about five levels.
	// maxEntries bounds its lines and list entries: a context takes about twelve.
	maxDepth, maxEntries = 64, 10_000
)

// checkYAML refuses what no kubeconfig needs and parsers choke on, without
// expanding anything: anchors and aliases, several documents, duplicate keys
// (parsers disagree on which counts).
func checkYAML(data []byte) error {
	if bytes.ContainsAny(data, "\u0085\u2028\u2029") {
		return refuse("it holds a line break that is neither LF nor CR (U+0085, U+2028 or U+2029)")
	}
	if overgrown(data) {
		return refuse("it is nested too deeply or has too many entries")
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return refuse("it is not valid YAML")
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return refuse("it holds more than one YAML document")
	}
	for nodes := []*yaml.Node{&document}; len(nodes) > 0; {
		node := nodes[len(nodes)-1]
		nodes = append(nodes[:len(nodes)-1], node.Content...)
		if node.Kind == yaml.AliasNode || node.Anchor != "" {
			return refuse("it uses YAML anchors or aliases")
		}
		if node.Kind != yaml.MappingNode {
			continue
		}
		seen := make(map[string]bool, len(node.Content)/2)
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i].Value
			if seen[key] {
				return refuse("it holds a key twice")
			}
			seen[key] = true
		}
	}
	return nil
}

// overgrown is a cheap look at the text before the parser, which takes long over
// deep nesting and many small nodes. It counts brackets, line breaks and commas
// and, at the start of each line, the dashes and question marks of nested lists
// and keys. Indentation needs no look: n levels take about n² bytes.
func overgrown(data []byte) bool {
	depth, entries, markers, indent := 0, 0, 0, true
	for _, b := range data {
		switch b {
		case '[', '{':
			depth++
			entries++
		case ']', '}':
			depth = max(0, depth-1)
		case ',':
			entries++
		case '\n', '\r':
			entries++
			markers, indent = 0, true
			continue
		case '-', '?':
			if indent {
				markers++
			}
		}
		if depth > maxDepth || markers > maxDepth || entries > maxEntries {
			return true
		}
		indent = indent && (b == ' ' || b == '\t' || b == '-' || b == '?')
	}
	return false
}

func checkCluster(c *clientcmdapi.Cluster, policy Policy) (Endpoint, error) {
	switch {
	case c.CertificateAuthority != "":
		return Endpoint{}, refuse("certificate-authority names a file; use certificate-authority-data")
	case !allowsProxy(c.ProxyURL, policy.Proxies):
		return Endpoint{}, refuse("proxy-url is not allowed, but for the proxies that the program's options name")
	case c.InsecureSkipTLSVerify && !policy.AllowInsecureTLS:
		return Endpoint{}, refuse("insecure-skip-tls-verify is not allowed; use certificate-authority-data")
	}
	if err := checkServer(c.Server, policy); err != nil {
		return Endpoint{}, err
	}
	if c.TLSServerName != "" && len(validation.IsDNS1123Subdomain(strings.ToLower(c.TLSServerName))) > 0 {
		return Endpoint{}, refuse("tls-server-name is not a host name")
	}
	if len(c.CertificateAuthorityData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CertificateAuthorityData) {
		return Endpoint{}, refuse("certificate-authority-data holds no PEM certificate")
	}
	return Endpoint{
		Server:     strings.TrimRight(c.Server, "/"),
		ServerName: c.TLSServerName,
		CA:         string(c.CertificateAuthorityData),
		Insecure:   c.InsecureSkipTLSVerify,
		Proxy:      c.ProxyURL,
	}, nil
}

// checkServer refuses URLs that aren't plainly that of an API server. A host
// name is checked again each time it is dialled, when its address is known.
func checkServer(server string, policy Policy) error {
	u, err := url.Parse(server)
	switch {
	case server == "":
		return refuse("it names no server")
	case err != nil, u.Opaque != "", u.Hostname() == "", len(server) > 1024:
		return refuse("the server is not a URL such as https://host:6443")
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("the server must be an https:// URL")
	case u.Scheme == "http" && !policy.AllowInsecureTLS:
		return refuse("an http:// server is not allowed; use https://")
	case u.User != nil:
		return refuse("the server must not hold a user name or password")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return refuse("the server must not hold a query or fragment")
	}
	return checkHost(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), policy)
}

func checkHost(host string, policy Policy) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		if why := address.Refused(addr, policy.AllowLoopback); why != "" {
			return refuse("the server is %s, which is not allowed", why)
		}
		return nil
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 || address.RefusedName(host, policy.AllowLoopback) {
		return refuse("the host of the server is neither a name nor an address")
	}
	if (host == "localhost" || strings.HasSuffix(host, ".localhost")) && !policy.AllowLoopback {
		return refuse("the server is a loopback address, which is not allowed")
	}
	return nil
}

func checkUser(u *clientcmdapi.AuthInfo) (Credentials, error) {
	if err := checkUserFields(u); err != nil {
		return Credentials{}, err
	}
	// A line break at the end of a token is a common slip.
	c := Credentials{Token: strings.TrimSpace(u.Token), Username: u.Username, Password: u.Password}
	if !httpguts.ValidHeaderFieldValue(c.Token) {
		return Credentials{}, refuse("the token holds characters that no header may hold")
	}
	if strings.Contains(c.Username, ":") {
		return Credentials{}, refuse("the user name holds a colon")
	}
	if len(u.ClientCertificateData) > 0 || len(u.ClientKeyData) > 0 {
		if len(u.ClientKeyData) > maxKeySize {
			return Credentials{}, refuse("client-key-data is larger than %d KiB", maxKeySize>>10)
		}
		pair, err := tls.X509KeyPair(u.ClientCertificateData, u.ClientKeyData)
		if err != nil {
			return Credentials{}, refuse("client-certificate-data and client-key-data are not a pair of PEM certificate and key")
		}
		c.Cert, c.Key, c.Certificate = string(u.ClientCertificateData), string(u.ClientKeyData), &pair
	}
	if c.Token == "" && c.Username == "" && c.Certificate == nil {
		// An API server answers /version to anybody, so no probe would notice.
		return Credentials{}, refuse("the user has no credentials; use a token or a client certificate")
	}
	return c, nil
}

// checkUserFields refuses what would make client-go read a file, run a program
// or act as somebody else.
func checkUserFields(u *clientcmdapi.AuthInfo) error {
	switch {
	case u.Exec != nil:
		return refuse("the user runs a program (exec), which is not allowed; use a token or a client certificate")
	case u.AuthProvider != nil:
		return refuse("the user has an auth-provider, which is not allowed; use a token or a client certificate")
	case u.TokenFile != "":
		return refuse("tokenFile names a file; use token")
	case u.ClientCertificate != "":
		return refuse("client-certificate names a file; use client-certificate-data")
	case u.ClientKey != "":
		return refuse("client-key names a file; use client-key-data")
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		return refuse("impersonation (as, as-uid, as-groups, as-user-extra) is not allowed")
	}
	return nil
}
