// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// tunnel is a proxy that leads to one server, whatever it is asked for, and counts its tunnels.
func tunnel(t *testing.T, to string, open *atomic.Int32) *url.URL {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "api.hidden.example.com:6443" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		open.Add(1)
		ours, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(ours, "HTTP/1.1 200 OK\r\n\r\n")
		go forward(ours, to)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// behind returns a kubeconfig of a server that only a proxy reaches.
func behind(t *testing.T, s *server, server, proxy string) []byte {
	t.Helper()
	config, err := clientcmd.Load(s.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.ProxyURL, cluster.TLSServerName = server, proxy, "example.com" // as in the server's certificate
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestProxies connects through the proxies that the options name, and through no other.
func TestProxies(t *testing.T) {
	s := newServer(t)
	var tunnels, others atomic.Int32
	proxy := tunnel(t, s.Listener.Addr().String(), &tunnels)
	other := tunnel(t, s.Listener.Addr().String(), &others)
	const server = "https://api.hidden.example.com:6443"
	o := quick()
	o.AllowLoopback = false // the proxy is an administrator's, and may be anywhere
	o.Proxies = []*url.URL{proxy}
	f := startFleet(t, o)
	f.add("a/b", behind(t, s, server, proxy.String()))
	conn := f.connected(t, "a/b")
	if _, err := conn.Facts(t.Context()); err != nil || tunnels.Load() == 0 {
		t.Errorf("%v, by %d tunnels", err, tunnels.Load())
	}
	if _, err := conn.Metadata().Resource(configMaps).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "could not find") {
		t.Errorf("the server doesn't answer by the proxy: %v", err)
	}
	for name, kubeconfig := range map[string][]byte{
		"another port":           behind(t, s, server, other.String()),
		"another scheme":         behind(t, s, server, "socks5://"+proxy.Host),
		"a path":                 behind(t, s, server, proxy.String()+"/x?y"),
		"an address that is ill": behind(t, s, "https://169.254.169.254", proxy.String()),
		"a number for a host":    behind(t, s, "https://2852039166", proxy.String()),
	} {
		f.add("a/c", kubeconfig)
		f.expect(t, "a/c", PhaseRefused, ReasonKubeconfigRefused)
		f.Remove("a/c")
		if others.Load() > 0 {
			t.Fatalf("%s: the other proxy was asked", name)
		}
	}
	f.add("a/d", behind(t, s, "https://elsewhere.example.com", proxy.String()))
	eventually(t, func() string {
		if s := f.State("a/d"); s.Phase != PhaseUnreachable || !strings.Contains(s.Message, "behind proxy "+proxy.Host) {
			return s.Message
		}
		return ""
	})
}
