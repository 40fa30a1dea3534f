// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet/fleettest"
)

// patience is how long a test waits for what should take milliseconds.
const patience = 30 * time.Second

// quick are intervals that let a test see several rounds of everything.
func quick() Options {
	return Options{
		Concurrency: 4, ConnectTimeout: time.Second, FirstTimeout: time.Second,
		RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond,
		ProbeInterval: 50 * time.Millisecond, ProbeTimeout: time.Second, ProbeFailures: 3,
		AllowLoopback: true, DirectReads: true, UserAgent: "test",
	}
}

// server is an API server as far as this package sees one.
type server struct {
	*httptest.Server
	says        atomic.Pointer[string] // what it answers a probe
	token       atomic.Pointer[string] // empty: anybody may ask
	status      atomic.Int32           // answer with this, if set
	requests    atomic.Int32
	probes      atomic.Int32
	discoveries atomic.Int32
	conns       atomic.Int32
	open        sync.Map // the connections that there are
	agents      sync.Map
	clientCerts sync.Map // common names of client certificates seen
	extra       http.HandlerFunc
	instead     func(w http.ResponseWriter, r *http.Request) bool // answers what it likes, but for probes
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.set("v1.36.3", "secret-token")
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
			s.open.Store(conn, true)
		case http.StateClosed:
			s.open.Delete(conn)
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// connections is how many are open.
func (s *server) connections() (n int) {
	s.open.Range(func(any, any) bool { n++; return true })
	return n
}

// set makes the server one of a version, which takes a token.
func (s *server) set(version, token string) {
	says := fmt.Sprintf(`{"gitVersion":%q}`, version)
	s.says.Store(&says)
	s.token.Store(&token)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.agents.Store(r.UserAgent(), true)
	for _, cert := range r.TLS.PeerCertificates {
		name, _, _ := strings.Cut(cert.Subject.CommonName, "@") // client-go adds the time
		s.clientCerts.Store(name, true)
	}
	if code := s.status.Load(); code != 0 {
		w.WriteHeader(int(code))
		return
	}
	if want := *s.token.Load(); want != "" && r.Header.Get("Authorization") != "Bearer "+want {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if s.instead != nil && r.URL.Path != "/version" && s.instead(w, r) {
		return
	}
	switch {
	case s.extra != nil && strings.HasPrefix(r.URL.Path, "/extra"):
		s.extra(w, r)
	case r.URL.Path == "/version":
		s.probes.Add(1)
		_, _ = io.WriteString(w, *s.says.Load())
	case r.URL.Path == "/api":
		s.discoveries.Add(1)
		writeGroups(w, groupOf("", "Pod", current))
	case r.URL.Path == "/apis":
		writeGroups(w, groupOf("apps", "Deployment", current))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// groupOf is what discovery says of a group with version v1 and a kind, or without one while that is stale.
func groupOf(name, kind string, freshness apidiscoveryv2.DiscoveryFreshness) apidiscoveryv2.APIGroupDiscovery {
	version := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: freshness}
	if freshness == current {
		version.Resources = []apidiscoveryv2.APIResourceDiscovery{{
			Resource: strings.ToLower(kind) + "s", Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get", "list"},
			ResponseKind: &metav1.GroupVersionKind{Group: name, Version: "v1", Kind: kind},
		}}
	}
	return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{version}}
}

func writeGroups(w http.ResponseWriter, groups ...apidiscoveryv2.APIGroupDiscovery) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}, Items: groups,
	})
}

func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// kubeconfig returns one with the token that the server takes now.
func (s *server) kubeconfig() []byte {
	return fleettest.Kubeconfig(s.URL, s.ca(), user(*s.token.Load()))
}

// get sends a request as a client of the connection does, and returns it with the header of the answer.
func get(t *testing.T, c *Connection, url string) (*http.Request, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return request, response.Header
}

// watchFailure watches ConfigMaps until that ends, and returns why it does: an error, or an event that says so.
func watchFailure(t *testing.T, c *Connection) error {
	t.Helper()
	var failed error
	err := c.WatchMetadata(t.Context(), configMaps, metav1.ListOptions{}, func(e watch.Event) {
		if status, ok := e.Object.(*metav1.Status); ok {
			failed = errors.New(status.Message)
		}
	})
	return errors.Join(err, failed)
}

func user(token string) *clientcmdapi.AuthInfo { return &clientcmdapi.AuthInfo{Token: token} }

// listener answers each connection with a function, and counts them.
func listener(t *testing.T, address string, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// freeAddress returns an address that nothing listens at. Its port is below those that the system gives to connections
// and listeners without one, so nothing takes it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+nextPort.Add(1)%10_000)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// nextPort begins anywhere, as several packages are tested at once.
var nextPort = func() *atomic.Uint32 {
	n := &atomic.Uint32{}
	n.Store(rand.Uint32())
	return n
}()

// stubSource reports nothing by itself.
type stubSource struct {
	name      string
	sink      Sink
	refreshed sync.Map
	refreshes atomic.Int32
}

func (s *stubSource) Name() string { return s.name }
func (s *stubSource) SetupWithManager(_ manager.Manager, sink Sink) error {
	s.sink = sink
	return nil
}
func (s *stubSource) Refresh(name multicluster.ClusterName) {
	s.refreshed.Store(name, true)
	s.refreshes.Add(1)
}

// awareFunc is a multicluster.Aware.
type awareFunc func(context.Context, multicluster.ClusterName, cluster.Cluster) error

func (f awareFunc) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	return f(ctx, name, c)
}

// fleetTest is a running provider with a record of what happened.
type fleetTest struct {
	*Provider
	source  *stubSource
	mu      sync.Mutex
	engaged map[multicluster.ClusterName][]*Connection
	notices map[multicluster.ClusterName]int
	stop    func()
}

// startFleet runs a provider with one source until the test ends.
func startFleet(t *testing.T, o Options, aware ...awareFunc) *fleetTest {
	t.Helper()
	f := &fleetTest{source: &stubSource{}, engaged: map[multicluster.ClusterName][]*Connection{}, notices: map[multicluster.ClusterName]int{}}
	o.Sources = []Source{f.source}
	f.Provider, f.stop = startSources(t, o, func(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
		f.mu.Lock()
		f.engaged[name] = append(f.engaged[name], c.(*Connection))
		f.mu.Unlock()
		for _, also := range aware {
			if err := also(ctx, name, c); err != nil {
				return err
			}
		}
		return nil
	})
	f.Subscribe(func(name multicluster.ClusterName) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.notices[name]++
	})
	return f
}

// startSources runs a provider with some sources until it is stopped, or the test ends.
func startSources(t *testing.T, o Options, engage awareFunc) (p *Provider, stop func()) {
	t.Helper()
	p = NewProvider(o)
	if err := p.SetupWithManager(nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Start(ctx, engage) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the provider did not stop")
		}
	})
	t.Cleanup(stop)
	return p, stop
}

// Set and Remove report as the source.
func (f *fleetTest) Set(name multicluster.ClusterName, m Member) { f.source.sink.Set(name, m) }
func (f *fleetTest) Remove(name multicluster.ClusterName)        { f.source.sink.Remove(name) }

func (f *fleetTest) engagements(name multicluster.ClusterName) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.engaged[name])
}

func (f *fleetTest) add(name multicluster.ClusterName, kubeconfig []byte) {
	f.Set(name, Member{ID: "1", Kubeconfig: kubeconfig, Origin: "Secret " + name.String() + "-kubeconfig"})
}

// join adds a server as cluster a/b, and waits for the connection.
func (f *fleetTest) join(t *testing.T, s *server) *Connection {
	t.Helper()
	f.add("a/b", s.kubeconfig())
	return f.connected(t, "a/b")
}

// expect waits for a phase and a reason.
func (f *fleetTest) expect(t *testing.T, name multicluster.ClusterName, phase Phase, reason string) State {
	t.Helper()
	eventually(t, func() string {
		if s := f.State(name); s.Phase != phase || s.Reason != reason {
			return fmt.Sprintf("%s is %s/%s (%s), want %s/%s", name, s.Phase, s.Reason, s.Message, phase, reason)
		}
		return ""
	})
	return f.State(name)
}

// connected waits for a connection.
func (f *fleetTest) connected(t *testing.T, name multicluster.ClusterName) *Connection {
	t.Helper()
	f.expect(t, name, PhaseConnected, ReasonConnected)
	conn, ok := f.Connection(name)
	if !ok {
		t.Fatalf("%s is connected, but has no Connection", name)
	}
	return conn
}

// eventually waits until a check returns no complaint.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(complaint)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// await waits until something holds.
func await(t *testing.T, complaint string, holds func() bool) {
	t.Helper()
	eventually(t, func() string {
		if holds() {
			return ""
		}
		return complaint
	})
}
