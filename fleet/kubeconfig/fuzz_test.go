// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// FuzzParse reads any text. What loads reaches an API server with TLS by its own credentials, and has nothing
// that makes client-go read files, run programs or go elsewhere. Whatever is refused isn't quoted.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := kubeconfig.Parse(data, kubeconfig.Policy{})
		if (config == nil) == (err == nil) {
			t.Fatalf("%v, %v", config, err)
		}
		again, same := kubeconfig.Parse(data, kubeconfig.Policy{})
		if err != nil {
			if refusal, ok := errors.AsType[kubeconfig.Refusal](err); !ok || len(refusal) > 200 || same == nil || same.Error() != err.Error() {
				t.Errorf("refused by %T %v, then by %v", err, err, same)
			}
			return
		}
		if again == nil || again.Digest() != config.Digest() {
			t.Error("it is another one the second time")
		}
		checkEndpoint(t, config.Endpoint)
		if c := config.Credentials; !httpguts.ValidHeaderFieldValue(c.Token) || (c.Cert == "") != (c.Key == "") || (c.Cert != "") != (c.Certificate != nil) {
			t.Error("its credentials can't be used")
		}
		checkAsClientGo(t, data)
	})
}

func checkEndpoint(t *testing.T, e kubeconfig.Endpoint) {
	t.Helper()
	server, err := url.Parse(e.Server)
	if err != nil || server.Scheme != "https" || server.User != nil || server.RawQuery != "" || server.Fragment != "" || server.Hostname() == "" || e.Insecure {
		t.Fatalf("accepted %+v", e)
	}
	if ip, err := netip.ParseAddr(server.Hostname()); err == nil && (ip.Unmap().IsLoopback() || ip.Unmap().IsLinkLocalUnicast() || ip.IsUnspecified()) {
		t.Errorf("accepted address %s", ip)
	}
	if host := strings.TrimSuffix(strings.ToLower(server.Hostname()), "."); host == "localhost" || strings.HasSuffix(host, ".localhost") {
		t.Errorf("accepted host %s", host)
	}
}

// checkAsClientGo expects nothing dangerous in what client-go reads of a text that was accepted.
func checkAsClientGo(t *testing.T, data []byte) {
	t.Helper()
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal("client-go can't read it")
	}
	current := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	for field, text := range map[string]string{
		"certificate-authority": cluster.CertificateAuthority, "proxy-url": cluster.ProxyURL, "tokenFile": user.TokenFile,
		"client-certificate": user.ClientCertificate, "client-key": user.ClientKey, "as": user.Impersonate, "as-uid": user.ImpersonateUID,
	} {
		if text != "" {
			t.Errorf("accepted %s", field)
		}
	}
	if user.Exec != nil || user.AuthProvider != nil || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0 || cluster.InsecureSkipTLSVerify {
		t.Error("accepted a program, another user, or a server without a check")
	}
}
