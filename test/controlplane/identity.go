// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-chandler/chandler/test/pki"
)

// Files that the components read.
const (
	caCert            = "ca.crt"
	caKey             = "ca.key"
	serverCert        = "server.crt"
	serverKey         = "server.key"
	serviceAccountKey = "service-account.key"
)

// admins is the group that RBAC lets do everything.
const admins = "system:masters"

// Name of the cluster.
func (c *ControlPlane) Name() string { return c.options.Name }

// Config is a client configuration of a cluster admin, without a limit on its requests.
func (c *ControlPlane) Config() *rest.Config { return c.config(c.admin) }

// Kubeconfig is that of the cluster admin, as the kubeconfig Secret of a Cluster API cluster has it: self-contained,
// with nothing to run and no files to read.
func (c *ControlPlane) Kubeconfig() []byte {
	return c.kubeconfig(c.options.Name+"-admin", c.admin)
}

// User is someone whom the cluster knows by a client certificate.
type User struct {
	Config     *rest.Config
	Kubeconfig []byte
}

// AddUser issues a client certificate for the user in these groups. What they may do is up to RBAC objects.
func (c *ControlPlane) AddUser(name string, groups ...string) (*User, error) {
	user, err := c.ca.Client(name, groups...)
	if err != nil {
		return nil, err
	}
	return &User{Config: c.config(user), Kubeconfig: c.kubeconfig(name, user)}, nil
}

func (c *ControlPlane) config(user pki.Pair) *rest.Config {
	return &rest.Config{
		Host:  c.url(),
		QPS:   -1,
		Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.ca.Certificate,
			CertData: user.Certificate,
			KeyData:  user.Key,
		},
	}
}

// kubeconfig names things as Cluster API does.
func (c *ControlPlane) kubeconfig(userName string, user pki.Pair) []byte {
	cluster, contextName := c.options.Name, userName+"@"+c.options.Name
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			cluster: {Server: c.url(), CertificateAuthorityData: c.ca.Certificate},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			userName: {ClientCertificateData: user.Certificate, ClientKeyData: user.Key},
		},
		Contexts: map[string]*clientcmdapi.Context{
			contextName: {Cluster: cluster, AuthInfo: userName},
		},
		CurrentContext: contextName,
	})
	if err != nil {
		panic(err) // only a type that its scheme does not know fails to be encoded
	}
	return data
}

func (c *ControlPlane) url() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port.number) }

// createIdentities makes the certificates and keys of everyone who starts with the cluster.
func (c *ControlPlane) createIdentities() error {
	var err error
	if c.ca, err = pki.NewAuthority(c.options.Name); err != nil {
		return err
	}
	if c.admin, err = c.ca.Client("kubernetes-admin", admins); err != nil {
		return err
	}
	server, err := c.ca.Server("kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	_, saKey, err := pki.NewKey()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		caCert:            c.ca.Certificate,
		caKey:             c.ca.Key,
		serverCert:        server.Certificate,
		serverKey:         server.Key,
		serviceAccountKey: saKey,
	} {
		if err := c.write(name, data); err != nil {
			return err
		}
	}
	return nil
}

// componentKubeconfig writes a component's kubeconfig. Each has a user name of its own, so that the audit log tells
// them apart; being an admin besides saves it a ServiceAccount for each of its controllers.
func (c *ControlPlane) componentKubeconfig(component string) (path string, err error) {
	name := "system:" + component
	user, err := c.ca.Client(name, admins)
	if err != nil {
		return "", err
	}
	file := component + ".kubeconfig"
	return c.path(file), c.write(file, c.kubeconfig(name, user))
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) write(name string, data []byte) error {
	return os.WriteFile(c.path(name), data, 0o600)
}
