// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfigs as what they are: input that may be hostile.
package kubeconfig

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Policy says what a kubeconfig may hold beyond the safe minimum.
type Policy struct {
	// AllowInsecureTLS accepts kubeconfigs that skip the check of the server
	// certificate, or that name an http:// server.
	AllowInsecureTLS bool
	// AllowLoopback accepts servers on this host. It is for tests and local
	// control planes: in a pod, loopback is the pod itself.
	AllowLoopback bool
	// Proxies are those that proxy-url may name, by scheme, host and port. See [CheckProxy].
	Proxies []*url.URL
}

// Config is what is left of a kubeconfig once it is checked. It has all that is
// needed to connect, and nothing that makes client-go read a file, run a
// program or go elsewhere.
type Config struct {
	Endpoint    Endpoint
	Credentials Credentials
	// Trusted is the configuration that [Trust] was given. It is nil for what was parsed.
	Trusted *rest.Config

	digest string
}

// Endpoint is where the API server is and how it proves its identity. Two
// kubeconfigs with equal endpoints differ in credentials only.
type Endpoint struct {
	Server     string // scheme, host and path
	ServerName string // for TLS, when it isn't the host
	CA         string // PEM; empty means the roots of the system
	Insecure   bool   // only with Policy.AllowInsecureTLS
	Proxy      string // URL; only one of Policy.Proxies
}

// Credentials are the ways to authenticate; a request carries all that are set.
type Credentials struct {
	Token              string
	Username, Password string
	Cert, Key          string           // PEM
	Certificate        *tls.Certificate // made of Cert and Key
}

// Host returns host and port of the server, and of its proxy if it has one, for messages.
func (k *Config) Host() string {
	u, err := url.Parse(k.Endpoint.Server)
	if err != nil {
		return "" // can't be: Parse has parsed it
	}
	if proxy, err := url.Parse(k.Endpoint.Proxy); err == nil && proxy.Host != "" {
		return u.Host + " behind proxy " + proxy.Host
	}
	return u.Host
}

// Refusal is why a kubeconfig isn't acceptable. Its text is fixed: that of a
// parser's error may quote a credential.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return "kubeconfig refused: " + string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// Parse reads a kubeconfig; no other function does. It checks the parsed file
// before client-go could act on it. It takes the current context with its
// cluster and user only. All else in the file is ignored, never opened and
// never run. Each error is a [Refusal], is deterministic and quotes nothing.
func Parse(data []byte, policy Policy) (*Config, error) {
	config, err := load(data)
	if err != nil {
		return nil, err
	}
	context := config.Contexts[config.CurrentContext]
	if config.CurrentContext == "" || context == nil {
		return nil, refuse("current-context names no context in it")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, refuse("the current context names a cluster or a user that is not in it")
	}

	k := &Config{}
	if k.Endpoint, err = checkCluster(cluster, policy); err != nil {
		return nil, err
	}
	if k.Credentials, err = checkUser(user); err != nil {
		return nil, err
	}
	k.digest = digestOf(k)
	return k, nil
}

// Digest identifies endpoint and credentials.
func (k *Config) Digest() string { return k.digest }

// load reads a kubeconfig whose text is fit to be read.
func load(data []byte) (*clientcmdapi.Config, error) {
	if len(data) > maxSize {
		return nil, refuse("it is larger than %d KiB", maxSize>>10)
	}
	if err := checkYAML(data); err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, refuse("it is not a valid kubeconfig")
	}
	return config, nil
}

// digestOf identifies a kubeconfig. Quotes keep neighbouring fields apart.
func digestOf(k *Config) string {
	c := k.Credentials
	c.Certificate = nil // it is made of others
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v %#v", k.Endpoint, c))
	return hex.EncodeToString(sum[:])
}

// Trust returns the Config of a server that the program itself chose to connect to, e.g. the one
// it runs in. Nothing is checked. Its Credentials are empty: [rest.TransportFor] adds them, and
// so follows token files and runs programs. Each rest.Config has a digest of its own, for
// functions in it can't be compared.
func Trust(config *rest.Config) (*Config, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the server: %w", err)
	}
	return &Config{
		Endpoint: Endpoint{Server: strings.TrimRight(server.String(), "/")},
		Trusted:  config,
		digest:   fmt.Sprintf("%p", config),
	}, nil
}
