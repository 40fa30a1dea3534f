// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
