// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// proxy stands in front of a workload API server. It ends TLS, so that it can
// count and intercept requests, and talks to the server as the user it was
// started for.
type proxy struct {
	*door
	server *http.Server
	shown  atomic.Pointer[tls.Certificate]
	user   []byte                   // kubeconfig
	counts func(*http.Request) bool // what is taken for a write

	mu     sync.Mutex
	writes []string // "METHOD path" of each
	traps  []trap
	first  func() // called at the next request; nil for nothing
}

// trap springs at a write.
type trap struct {
	write    int // the number of it, from 1
	answered bool
	spring   func()
}

// proxyCertificate is what proxies show at first.
var proxyCertificate = sync.OnceValues(newCertificate)

// newCertificate returns one for 127.0.0.1 that is its own authority.
func newCertificate() (certificate, error) {
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	return certificate{chain: chain, key: key}, err
}

type certificate struct{ chain, key []byte }

// startProxy puts a proxy in front of the server of a Cluster, and makes the
// Cluster's kubeconfig lead to it.
func (tn *tenant) startProxy(cluster string, s *server) *proxy {
	tn.t.Helper()
	p := tn.proxyAs(tn.userOn(s, cluster))
	tn.writeKubeconfig(cluster, p.kubeconfig(tn.t))
	return p
}

// proxyAs starts a proxy that talks to an API server as the user.
func (tn *tenant) proxyAs(user *controlplane.User) *proxy {
	tn.t.Helper()
	transport, err := rest.TransportFor(user.Config)
	must.Succeed(tn.t, err)
	target, err := url.Parse(user.Config.Host)
	must.Succeed(tn.t, err)
	p := &proxy{door: openDoor(tn.t), user: user.Kubeconfig, counts: isWrite}
	p.server = &http.Server{
		Handler: p.intercept(&httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1, // watches
			ErrorLog:      log.New(io.Discard, "", 0),
		}),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p.show(tn.t, mustCertificate(tn.t))
	p.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return p.shown.Load(), nil
	}}
	go func() { _ = p.server.ServeTLS(p.door, "", "") }() // ends with an error when it is closed
	tn.t.Cleanup(func() { _ = p.server.Close() })
	return p
}

func mustCertificate(t *testing.T) certificate {
	t.Helper()
	pair, err := proxyCertificate()
	must.Succeed(t, err)
	return pair
}

// show has the proxy show another certificate to who connects from now on.
func (p *proxy) show(t *testing.T, c certificate) {
	t.Helper()
	pair, err := tls.X509KeyPair(c.chain, c.key)
	must.Succeed(t, err)
	p.shown.Store(&pair)
}

// kubeconfig leads to the proxy.
func (p *proxy) kubeconfig(t *testing.T) []byte {
	t.Helper()
	return p.kubeconfigWith(t, mustCertificate(t).chain)
}

// kubeconfigWith leads to the proxy, and trusts these authorities.
func (p *proxy) kubeconfigWith(t *testing.T, authorities []byte) []byte {
	t.Helper()
	config, err := clientcmd.Load(p.user)
	must.Succeed(t, err)
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = "https://"+p.address, authorities
	}
	data, err := clientcmd.Write(*config)
	must.Succeed(t, err)
	return data
}

// atWrite calls spring at the k-th write from now: before the server sees it,
// or after the server has answered it. The client gets no answer either way.
func (p *proxy) atWrite(k int, answered bool, spring func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.traps = nil, []trap{{write: k, answered: answered, spring: spring}}
}

// atFirst calls arrived when the next request arrives.
func (p *proxy) atFirst(arrived func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = arrived
}

// countWrites forgets the writes so far.
func (p *proxy) countWrites() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.traps = nil, nil
}

// seen are the writes since they were last forgotten.
func (p *proxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.writes...)
}

func (p *proxy) intercept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		first := p.first
		p.first = nil
		p.mu.Unlock()
		if first != nil {
			first()
		}
		sprung := p.note(r)
		if sprung == nil {
			next.ServeHTTP(w, r)
			return
		}
		if sprung.answered {
			// Whether the client lives or not, the server is to see the request whole.
			next.ServeHTTP(&lostAnswer{header: http.Header{}}, r)
		}
		sprung.spring()
		panic(http.ErrAbortHandler) // the connection breaks
	})
}

// note counts a write, and returns the trap that it springs.
func (p *proxy) note(r *http.Request) *trap {
	if !p.counts(r) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, r.Method+" "+r.URL.Path)
	for i := range p.traps {
		if p.traps[i].write == len(p.writes) {
			return &p.traps[i]
		}
	}
	return nil
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// isWriteOfAddons reports whether a request writes what Chandler keeps on the management
// cluster: stacks, their revisions, and ClusterAddons.
func isWriteOfAddons(r *http.Request) bool {
	return isWrite(r) && (strings.Contains(r.URL.Path, "/addonstacks/") || strings.Contains(r.URL.Path, "/clusteraddons") ||
		strings.Contains(r.URL.Path, "/controllerrevisions"))
}

// lostAnswer takes an answer that nobody gets.
type lostAnswer struct{ header http.Header }

func (l *lostAnswer) Header() http.Header            { return l.header }
func (l *lostAnswer) WriteHeader(int)                {}
func (l *lostAnswer) Write(data []byte) (int, error) { return len(data), nil }
