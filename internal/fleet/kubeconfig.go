// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// maxKubeconfigSize bounds a kubeconfig, in bytes. Cluster API's have about
	// 6 KiB; the bound also keeps the time to parse a hostile one short.
	maxKubeconfigSize = 256 << 10
	// maxKeySize bounds a PEM encoded client key, in bytes: enough for RSA with
	// 16384 bits. Checking much larger ones takes seconds.
	maxKeySize = 16 << 10
)

// KubeconfigPolicy says what a kubeconfig may hold beyond the safe minimum;
// see the fields of the same names in Options.
type KubeconfigPolicy struct {
	AllowInsecureTLS, AllowExec, AllowLoopback bool
}

// Kubeconfig is what is left of a kubeconfig once it is checked: all that is
// needed to connect, and nothing that makes client-go read a file, run a
// program or go elsewhere.
type Kubeconfig struct {
	endpoint    endpoint
	credentials credentials
	// digest identifies endpoint and credentials.
	digest string
}

// endpoint is where the API server is and how it proves its identity. Two
// kubeconfigs with equal endpoints differ in credentials only.
type endpoint struct {
	server     string // scheme, host and path
	serverName string // for TLS, when it isn't the host
	ca         string // PEM; empty means the roots of the system
	insecure   bool
}

// credentials are one way to authenticate; a request carries all that are set.
type credentials struct {
	token              string
	username, password string
	cert, key          string // PEM
	certificate        *tls.Certificate
	exec               *clientcmdapi.ExecConfig
}

// Host returns host and port of the server, for messages.
func (k *Kubeconfig) Host() string {
	u, err := url.Parse(k.endpoint.server)
	if err != nil {
		return "" // can't be: ParseKubeconfig has parsed it
	}
	return u.Host
}

// ErrKubeconfigRefused matches every error of ParseKubeconfig.
var ErrKubeconfigRefused = errors.New("kubeconfig refused")

// refusal is why a kubeconfig isn't acceptable. Its text is fixed: that of a
// parser's error may quote a credential.
type refusal string

func (r refusal) Error() string        { return ErrKubeconfigRefused.Error() + ": " + string(r) }
func (r refusal) Is(target error) bool { return target == ErrKubeconfigRefused }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// ParseKubeconfig is the one function that reads a kubeconfig. It checks the
// parsed file before client-go could act on it, and takes the current context
// with its cluster and user only; whatever else the file holds is ignored,
// never opened and never run. Errors match ErrKubeconfigRefused, are
// deterministic and quote nothing.
func ParseKubeconfig(data []byte, policy KubeconfigPolicy) (*Kubeconfig, error) {
	if len(data) > maxKubeconfigSize {
		return nil, refuse("it is larger than %d KiB", maxKubeconfigSize>>10)
	}
	if err := checkYAML(data); err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, refuse("it is not a valid kubeconfig")
	}
	context := config.Contexts[config.CurrentContext]
	if config.CurrentContext == "" || context == nil {
		return nil, refuse("current-context names no context in it")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, refuse("the current context names a cluster or a user that is not in it")
	}

	k := &Kubeconfig{}
	if k.endpoint, err = checkCluster(cluster, policy); err != nil {
		return nil, err
	}
	if k.credentials, err = checkUser(user, policy); err != nil {
		return nil, err
	}
	k.digest = digestOf(k)
	return k, nil
}

// checkYAML refuses what no kubeconfig needs and parsers choke on, without
// expanding anything: anchors and aliases, several documents, duplicate keys
// (parsers disagree on which counts).
func checkYAML(data []byte) error {
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
			if key := node.Content[i].Value; seen[key] {
				return refuse("it holds a key twice")
			} else {
				seen[key] = true
			}
		}
	}
	return nil
}

func checkCluster(c *clientcmdapi.Cluster, policy KubeconfigPolicy) (endpoint, error) {
	switch {
	case c.CertificateAuthority != "":
		return endpoint{}, refuse("certificate-authority names a file; use certificate-authority-data")
	case c.ProxyURL != "":
		return endpoint{}, refuse("proxy-url is not allowed")
	case c.InsecureSkipTLSVerify && !policy.AllowInsecureTLS:
		return endpoint{}, refuse("insecure-skip-tls-verify is not allowed; use certificate-authority-data")
	}
	if err := checkServer(c.Server, policy); err != nil {
		return endpoint{}, err
	}
	if c.TLSServerName != "" && len(validation.IsDNS1123Subdomain(strings.ToLower(c.TLSServerName))) > 0 {
		return endpoint{}, refuse("tls-server-name is not a host name")
	}
	if len(c.CertificateAuthorityData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CertificateAuthorityData) {
		return endpoint{}, refuse("certificate-authority-data holds no PEM certificate")
	}
	return endpoint{
		server:     strings.TrimRight(c.Server, "/"),
		serverName: c.TLSServerName,
		ca:         string(c.CertificateAuthorityData),
		insecure:   c.InsecureSkipTLSVerify,
	}, nil
}

// checkServer refuses URLs that aren't plainly that of an API server. A host
// name is checked again each time it is dialled, when its address is known.
func checkServer(server string, policy KubeconfigPolicy) error {
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
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		if why := refusedAddress(addr, policy); why != "" {
			return refuse("the server is %s, which is not allowed", why)
		}
		return nil
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 || isNumeric(host) {
		return refuse("the host of the server is neither a name nor an address")
	}
	if (host == "localhost" || strings.HasSuffix(host, ".localhost")) && !policy.AllowLoopback {
		return refuse("the server is a loopback address, which is not allowed")
	}
	return nil
}

// isNumeric tells whether the last label of a host is a number, as in 2130706433
// or 127.1, which some resolvers take for an IPv4 address.
func isNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}

func checkUser(u *clientcmdapi.AuthInfo, policy KubeconfigPolicy) (credentials, error) {
	switch {
	case u.Exec != nil && !policy.AllowExec:
		return credentials{}, refuse("the user runs a program (exec), which is not allowed; use a token or a client certificate")
	case u.AuthProvider != nil:
		return credentials{}, refuse("the user has an auth-provider, which is not allowed; use a token or a client certificate")
	case u.TokenFile != "":
		return credentials{}, refuse("tokenFile names a file; use token")
	case u.ClientCertificate != "":
		return credentials{}, refuse("client-certificate names a file; use client-certificate-data")
	case u.ClientKey != "":
		return credentials{}, refuse("client-key names a file; use client-key-data")
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		return credentials{}, refuse("impersonation (as, as-uid, as-groups, as-user-extra) is not allowed")
	case !httpguts.ValidHeaderFieldValue(u.Token):
		return credentials{}, refuse("the token holds characters that no header may hold")
	case strings.Contains(u.Username, ":"):
		return credentials{}, refuse("the user name holds a colon")
	}
	c := credentials{token: strings.TrimSpace(u.Token), username: u.Username, password: u.Password, exec: u.Exec}
	if c.exec != nil {
		c.exec = c.exec.DeepCopy()
		c.exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
		c.exec.StdinUnavailable = true
	}
	if len(u.ClientCertificateData) > 0 || len(u.ClientKeyData) > 0 {
		if len(u.ClientKeyData) > maxKeySize {
			return credentials{}, refuse("client-key-data is larger than %d KiB", maxKeySize>>10)
		}
		pair, err := tls.X509KeyPair(u.ClientCertificateData, u.ClientKeyData)
		if err != nil {
			return credentials{}, refuse("client-certificate-data and client-key-data are not a pair of PEM certificate and key")
		}
		c.cert, c.key, c.certificate = string(u.ClientCertificateData), string(u.ClientKeyData), &pair
	}
	if c.token == "" && c.username == "" && c.certificate == nil && c.exec == nil {
		// An API server answers /version to anybody, so no probe would notice.
		return credentials{}, refuse("the user has no credentials; use a token or a client certificate")
	}
	return c, nil
}

// digestOf identifies a kubeconfig. Lengths keep neighbouring fields apart.
func digestOf(k *Kubeconfig) string {
	h := sha256.New()
	for _, field := range []string{
		k.endpoint.server, k.endpoint.serverName, k.endpoint.ca, fmt.Sprint(k.endpoint.insecure),
		k.credentials.token, k.credentials.username, k.credentials.password, k.credentials.cert, k.credentials.key,
		execOf(k.credentials.exec),
	} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func execOf(e *clientcmdapi.ExecConfig) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%q %q %q %q %q %t", e.Command, e.Args, e.Env, e.APIVersion, e.InstallHint, e.ProvideClusterInfo)
}
