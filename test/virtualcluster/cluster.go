// SPDX-License-Identifier: Apache-2.0

package virtualcluster

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
)

// clusterLabel is that of each object on the server: it says to which cluster it belongs.
const clusterLabel = "test.chandler/cluster"

// Authority issues the certificate of all virtual clusters of a test.
type Authority struct {
	certificate []byte
	tls         *tls.Config
}

// NewAuthority makes a certificate.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	authority, err := pki.NewAuthority("virtual-clusters")
	must.Succeed(t, err)
	server, err := authority.Server("virtual-clusters")
	must.Succeed(t, err)
	pair, err := tls.X509KeyPair(server.Certificate, server.Key)
	must.Succeed(t, err)
	return &Authority{
		certificate: authority.Certificate,
		tls:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}},
	}
}

// cluster passes on requests to the server it shares.
type cluster struct {
	name, prefix string
	server       *url.URL
	transport    http.RoundTripper
}

// New returns the address of a virtual cluster with its first namespaces. Whoever uses it is the user on the server. It
// ends with the test.
func (authority *Authority) New(t testing.TB, user *controlplane.User, name string) *Address {
	t.Helper()
	c := &cluster{name: name, prefix: name + "-"}
	var err error
	if c.server, err = url.Parse(user.Config.Host); err != nil {
		t.Fatal(err)
	}
	if c.transport, err = rest.TransportFor(user.Config); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(user.Config)
	must.Succeed(t, err)
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		ns := &corev1.Namespace{}
		ns.Name, ns.Labels = c.prefix+namespace, map[string]string{clusterLabel: name}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	a := listen(t)
	a.Prefix = c.prefix
	a.Kubeconfig, err = clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: "https://" + a.listener.Addr().String(), CertificateAuthorityData: authority.certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": {Token: "token"}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: "user"}},
		CurrentContext: name,
	})
	must.Succeed(t, err)
	front := &http.Server{
		Handler: c, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		// Each has its own: http.Server changes it.
		TLSConfig: authority.tls.Clone(),
	}
	t.Cleanup(func() { _ = front.Close() })
	go func() { _ = front.ServeTLS(countedListener{a.listener, &a.bytes}, "", "") }()
	return a
}
