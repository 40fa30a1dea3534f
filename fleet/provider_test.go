// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// TestBadClustersDelayNoOther has a fleet with clusters that are bad in every
// way. The good ones connect while the bad ones hang. Each bad one says what is
// wrong with it, and recovers by itself.
func TestBadClustersDelayNoOther(t *testing.T) {
	o := quick()
	o.Concurrency = 2 // fewer than there are bad clusters
	o.ConnectTimeout, o.FirstTimeout = time.Second, 500*time.Millisecond
	f := startFleet(t, o)

	back := newServer(t) // what the bad endpoints turn into
	refusedAt := freeAddress(t)
	var healed atomic.Bool
	bad := func(serve func(net.Conn)) string {
		return listener(t, "127.0.0.1:0", func(c net.Conn) {
			if healed.Load() {
				forward(c, back.Listener.Addr().String())
				return
			}
			serve(c)
		})
	}
	// TLS works, then the answer trickles: 1 byte, and nothing for a long time.
	certificate := back.TLS.Certificates
	endpoints := map[multicluster.ClusterName]struct{ address, reason string }{
		"bad/refused":    {refusedAt, ReasonConnectionRefused},
		"bad/black-hole": {bad(func(net.Conn) {}), ReasonConnectionTimedOut},
		"bad/tls-hang":   {bad(func(c net.Conn) { _, _ = c.Write([]byte{0x16, 3, 3, 0, 100}) }), ReasonTLSFailed},
		"bad/trickle": {bad(func(c net.Conn) {
			s := tls.Server(c, &tls.Config{Certificates: certificate})
			for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n") {
				if _, err := s.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}), ReasonResponseTimedOut},
		"bad/reset":   {bad(func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }), ReasonConnectionFailed},
		"bad/no-tls":  {bad(func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH\r\n") }), ReasonTLSFailed},
		"bad/no-name": {"does-not-exist.invalid:6443", ReasonNameResolutionFailed},
	}
	for name, e := range endpoints {
		f.add(name, fleettest.Kubeconfig("https://"+e.address, back.ca(), user("secret-token")))
	}

	start := time.Now()
	for i := range 3 {
		name := multicluster.ClusterName(fmt.Sprintf("good/%d", i))
		f.add(name, newServer(t).kubeconfig())
	}
	for i := range 3 {
		f.connected(t, multicluster.ClusterName(fmt.Sprintf("good/%d", i)))
	}
	t.Logf("3 good clusters connected beside %d bad ones in %s", len(endpoints), time.Since(start))

	for name, e := range endpoints {
		s := f.expect(t, name, PhaseUnreachable, e.reason)
		if strings.Contains(s.Message, "secret-token") || !strings.Contains(s.Message, e.address) {
			t.Errorf("%s: %s", name, s.Message)
		}
		t.Logf("%s: %s", s.Reason, s.Message)
	}
	// While everything bad is retried, a new cluster connects fast.
	start = time.Now()
	f.add("good/late", newServer(t).kubeconfig())
	f.connected(t, "good/late")
	t.Logf("a new cluster connected in %s", time.Since(start))

	healed.Store(true)
	listener(t, refusedAt, func(c net.Conn) { forward(c, back.Listener.Addr().String()) })
	start = time.Now()
	for name := range endpoints {
		if name != "bad/no-name" {
			f.connected(t, name)
		}
	}
	t.Logf("bad clusters recovered in %s", time.Since(start))
}

func forward(c net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		_ = c.Close()
		return
	}
	go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
	_, _ = io.Copy(c, to)
	_ = c.Close()
}

// TestProbesThatFail have the reason by which they do, and the cluster connects once they don't.
func TestProbesThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int32
		says, reason string
	}{
		"401":                 {status: http.StatusUnauthorized, reason: ReasonUnauthorized},
		"403":                 {status: http.StatusForbidden, reason: ReasonForbidden},
		"500":                 {status: http.StatusInternalServerError, reason: ReasonProbeFailed},
		"a redirect":          {status: http.StatusFound, reason: ReasonProbeFailed},
		"HTML":                {says: "<html>", reason: ReasonProbeFailed},
		"no version":          {says: "{}", reason: ReasonProbeFailed},
		"hostile version":     {says: `{"gitVersion":"v1\n<script>"}`, reason: ReasonProbeFailed},
		"version without end": {says: `{"gitVersion":"v1.99999999999.0"}`, reason: ReasonProbeFailed},
		"too large":           {says: `{"gitVersion":"` + strings.Repeat("v", 600<<10) + `"}`, reason: ReasonResponseTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := startFleet(t, quick()), newServer(t)
			s.status.Store(tc.status)
			if tc.says != "" {
				s.says.Store(&tc.says)
			}
			f.add("a/b", s.kubeconfig())
			t.Log(f.expect(t, "a/b", PhaseUnreachable, tc.reason).Message)
			s.status.Store(0)
			s.set("v1.36.3", "secret-token")
			f.connected(t, "a/b")
		})
	}
}

func TestWrongCA(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	ca, _, err := cert.GenerateSelfSignedCertKey("another", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.add("a/b", fleettest.Kubeconfig(s.URL, ca, user("secret-token")))
	t.Log(f.expect(t, "a/b", PhaseUnreachable, ReasonTLSFailed).Message)
	if s.requests.Load() != 0 {
		t.Error("a request reached a server with the wrong certificate")
	}
}

// A name that resolves to a loopback address is noticed when it is dialled.
func TestNameOfARefusedAddress(t *testing.T) {
	o := quick().defaulted()
	o.AllowLoopback = false
	k, err := kubeconfig.Parse(fleettest.Kubeconfig("https://localhost:1", nil, user("t")), kubeconfig.Policy{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	_, fault := attempt{root: t.Context(), kubeconfig: k, subject: transport.Subject{Host: "localhost:1", Origin: "Secret a/b"}, options: o, onUnanswered: func() {}}.connect(t.Context())
	if fault == nil || fault.Reason != ReasonAddressRefused {
		t.Errorf("%v", fault)
	}
}

func TestLifeOfACluster(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	const name = "a/b"
	if got := f.State(name); got.Phase != PhaseUnknown {
		t.Errorf("%+v", got)
	}
	if _, err := f.Get(t.Context(), name); !errors.Is(err, multicluster.ErrClusterNotFound) {
		t.Errorf("%v", err)
	}
	f.add(name, nil)
	f.expect(t, name, PhaseWaiting, ReasonKubeconfigMissing)
	f.add(name, fleettest.Kubeconfig("https://api.example.com", nil, &clientcmdapi.AuthInfo{TokenFile: "/x"}))
	f.expect(t, name, PhaseRefused, ReasonKubeconfigRefused)
	f.add(name, s.kubeconfig())
	conn := f.connected(t, name)
	if got, err := f.Get(t.Context(), name); err != nil || got != cluster.Cluster(conn) {
		t.Errorf("%v, %v", got, err)
	}
	await(t, "it is not engaged so often", func() bool { return f.engagements(name) == 1 })
	if m, ok := f.Describe(name); !ok || m.Kubeconfig != nil || m.Origin != "Secret a/b-kubeconfig" {
		t.Errorf("%+v", m)
	}
	probes := s.probes.Load()
	await(t, "no probes", func() bool { return s.probes.Load() >= probes+3 })
	s.agents.Range(func(agent, _ any) bool {
		if agent != "test" {
			t.Errorf("user agent %q", agent)
		}
		return true
	})

	before := s.requests.Load()
	f.Remove(name)
	if _, ok := f.Connection(name); ok || f.State(name).Phase != PhaseUnknown {
		t.Error("a removed cluster must be out of sight at once")
	}
	<-conn.Done()
	time.Sleep(150 * time.Millisecond)
	if n := s.requests.Load() - before; n > 1 { // a probe may have been under way
		t.Errorf("%d requests after the removal", n)
	}
}

// A cluster that stops answering is given up after a few probes, found again
// by itself, and is a new Connection then.
func TestDisconnectAndReconnect(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	first := f.join(t, s)
	s.status.Store(http.StatusServiceUnavailable)
	await(t, "still connected", func() bool { return first.Context().Err() != nil })
	f.expect(t, "a/b", PhaseUnreachable, ReasonProbeFailed)
	if _, ok := f.Connection("a/b"); ok {
		t.Error("a connection without an answer")
	}
	s.status.Store(0)
	if second := f.connected(t, "a/b"); second == first {
		t.Error("the same Connection")
	}
}

// With a new token the connection, and the watches on it, go on.
func TestTokenRotation(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	streaming, ended := make(chan struct{}), make(chan struct{})
	s.extra = func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(streaming)
		<-r.Context().Done()
		close(ended)
	}
	conn := f.join(t, s)

	config := rest.CopyConfig(conn.GetConfig())
	config.Timeout = 0
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if response, err := client.Get(s.URL + "/extra"); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	<-streaming

	both := fleettest.Kubeconfig(s.URL, s.ca(), user("new-token"))
	f.add("a/b", both) // the server doesn't take it yet
	state := f.expect(t, "a/b", PhaseConnected, ReasonUnauthorized)
	t.Log(state.Message)
	if conn.Context().Err() != nil {
		t.Fatal("the connection was dropped for a kubeconfig that does not work")
	}
	s.set("v1.36.3", "new-token")
	f.expect(t, "a/b", PhaseConnected, ReasonConnected)
	if now, _ := f.Connection("a/b"); now != conn || conn.Context().Err() != nil {
		t.Error("a new token must not make a new connection")
	}
	response, err := client.Get(s.URL + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Errorf("a client made before the rotation: %s", response.Status)
	}
	select {
	case <-ended:
		t.Error("the watch was cut off")
	default:
	}
	f.Remove("a/b")
	<-ended
}

// With a new client certificate TLS connections are opened again below the
// same Connection.
func TestClientCertificateRotation(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	s.set("v1.36.3", "")
	kubeconfig := func(name string) []byte {
		pair, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return fleettest.Kubeconfig(s.URL, s.ca(), &clientcmdapi.AuthInfo{ClientCertificateData: pair, ClientKeyData: key})
	}
	f.add("a/b", kubeconfig("first"))
	conn := f.connected(t, "a/b")
	f.add("a/b", kubeconfig("second"))
	await(t, "the new certificate is not in use", func() bool { _, seen := s.clientCerts.Load("second"); return seen })
	s.clientCerts.Clear()
	await(t, "the old certificate is still in use", func() bool {
		_, old := s.clientCerts.Load("first")
		_, fresh := s.clientCerts.Load("second")
		if old {
			s.clientCerts.Clear()
		}
		return fresh && !old
	})
	if now, _ := f.Connection("a/b"); now != conn || conn.Context().Err() != nil {
		t.Error("a new certificate must not make a new connection")
	}
}

// A new address makes a new Connection, but only once it answers.
func TestServerRotation(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	conn := f.join(t, s)
	f.add("a/b", fleettest.Kubeconfig("https://"+freeAddress(t), s.ca(), user("secret-token")))
	f.expect(t, "a/b", PhaseConnected, ReasonConnectionRefused)
	if conn.Context().Err() != nil {
		t.Fatal("dropped")
	}
	other := newServer(t)
	f.add("a/b", other.kubeconfig())
	<-conn.Done()
	next := f.connected(t, "a/b")
	if next.GetConfig().Host != other.URL {
		t.Errorf("connected to %s", next.GetConfig().Host)
	}
	await(t, "it is not engaged so often", func() bool { return f.engagements("a/b") == 2 })
}

// A cluster of the same name is another cluster.
func TestSuccessor(t *testing.T) {
	f, s, other := startFleet(t, quick()), newServer(t), newServer(t)
	conn := f.join(t, s)
	f.Set("a/b", Member{ID: "2", Kubeconfig: other.kubeconfig(), Origin: "Secret a/b-kubeconfig"})
	<-conn.Done()
	if next := f.connected(t, "a/b"); next.GetConfig().Host != other.URL {
		t.Errorf("connected to %s", next.GetConfig().Host)
	}
}

// A 401 to any request leads to a reconnect as soon as the new kubeconfig is there.
func TestUnauthorized(t *testing.T) {
	o := quick()
	o.ProbeInterval = time.Hour
	f, s := startFleet(t, o), newServer(t)
	conn := f.join(t, s)
	s.set("v1.36.3", "rotated")
	if _, err := conn.Facts(t.Context()); err == nil {
		t.Fatal("the server took an old token")
	}
	f.expect(t, "a/b", PhaseUnreachable, ReasonUnauthorized)
	if _, asked := f.source.refreshed.Load(multicluster.ClusterName("a/b")); !asked {
		t.Error("the source was not asked for the kubeconfig again")
	}
	start := time.Now()
	f.join(t, s)
	t.Logf("connected %s after the new kubeconfig", time.Since(start))
}

// Credentials go to no other host, whatever the server says.
func TestRedirect(t *testing.T) {
	var asked atomic.Int32
	thief := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer thief.Close()
	f, s := startFleet(t, quick()), newServer(t)
	s.extra = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/steal", http.StatusTemporaryRedirect)
	}
	conn := f.join(t, s)
	response, err := conn.GetHTTPClient().Get(s.URL + "/extra")
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, transport.ErrForeignHost) {
		t.Errorf("%v", err)
	}
	if asked.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

// A component that blocks in Engage holds up its own cluster only.
func TestBlockedEngage(t *testing.T) {
	f := startFleet(t, quick(), func(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
		if name == "a/blocked" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	f.add("a/blocked", newServer(t).kubeconfig())
	f.connected(t, "a/blocked")
	f.add("a/other", newServer(t).kubeconfig())
	f.connected(t, "a/other")
	await(t, "not engaged", func() bool { return f.engagements("a/other") == 1 })
	f.Remove("a/blocked")
}

// A component that fails to engage is tried again with backoff.
func TestFailedEngage(t *testing.T) {
	var calls atomic.Int32
	f := startFleet(t, quick(), func(context.Context, multicluster.ClusterName, cluster.Cluster) error {
		if calls.Add(1) < 4 {
			return errors.New("boom")
		}
		return nil
	})
	f.add("a/b", newServer(t).kubeconfig())
	f.expect(t, "a/b", PhaseUnreachable, ReasonEngageFailed)
	await(t, "not tried again", func() bool { return calls.Load() >= 4 })
	f.connected(t, "a/b")
}

// A change is visible when subscribers are called, and they may call back.
func TestSubscribe(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	var mu sync.Mutex
	var seen []string
	f.Subscribe(func(name multicluster.ClusterName) {
		mu.Lock()
		defer mu.Unlock()
		state := f.State(name)
		_, connected := f.Connection(name)
		seen = append(seen, fmt.Sprintf("%s %s %t", state.Phase, state.ServerVersion, connected))
	})
	expect := func(want string) {
		t.Helper()
		eventually(t, func() string {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) == 0 || seen[len(seen)-1] != want {
				return fmt.Sprintf("%q, want %q last", seen, want)
			}
			return ""
		})
	}
	f.add("a/b", nil)
	f.add("a/b", s.kubeconfig())
	expect("Connected v1.36.3 true")
	s.set("v1.37.0", "secret-token")
	expect("Connected v1.37.0 true")
	mu.Lock()
	n := len(seen)
	mu.Unlock()
	time.Sleep(200 * time.Millisecond)
	mu.Lock()
	if len(seen) != n {
		t.Errorf("told without a change: %q", seen[n:])
	}
	mu.Unlock()
	f.Remove("a/b")
	expect("Unknown  false")
}

// Since keeps still as long as nothing changes, over any number of retries.
func TestSince(t *testing.T) {
	f := startFleet(t, quick())
	f.add("a/b", fleettest.Kubeconfig("https://"+freeAddress(t), nil, user("t")))
	first := f.expect(t, "a/b", PhaseUnreachable, ReasonConnectionRefused)
	time.Sleep(300 * time.Millisecond)
	if now := f.State("a/b"); now != first {
		t.Errorf("%+v became %+v", first, now)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.notices["a/b"]; n > 2 {
		t.Errorf("%d notices of one change", n)
	}
}

// The intervals follow the injected clock.
func TestFakeClock(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	o := quick()
	o.Clock, o.RetryMin, o.RetryMax, o.ProbeInterval = clock, time.Hour, time.Hour, 24*time.Hour
	f, s := startFleet(t, o), newServer(t)
	s.status.Store(http.StatusServiceUnavailable)
	f.add("a/b", s.kubeconfig())
	f.expect(t, "a/b", PhaseUnreachable, ReasonProbeFailed)
	s.status.Store(0)
	time.Sleep(100 * time.Millisecond)
	if n := s.requests.Load(); n != 1 {
		t.Fatalf("%d requests within the backoff", n)
	}
	await(t, "no timer", func() bool { return clock.HasWaiters() })
	clock.Step(time.Hour)
	f.connected(t, "a/b")
}

func stacks() string {
	buffer := make([]byte, 1<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}

// Everything at once, for the race detector.
func TestChurn(t *testing.T) {
	f := startFleet(t, quick())
	servers := []*server{newServer(t), newServer(t)}
	f.Subscribe(func(name multicluster.ClusterName) { f.State(name); f.Connection(name) })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := multicluster.ClusterName(fmt.Sprintf("a/%d", i%4))
			for j := range 60 {
				switch j % 6 {
				case 0, 1:
					f.add(name, servers[j%2].kubeconfig())
				case 2:
					f.Set(name, Member{ID: fmt.Sprint(j), Kubeconfig: servers[0].kubeconfig()})
				case 3:
					f.add(name, fleettest.Kubeconfig(servers[0].URL, servers[0].ca(), user(fmt.Sprint(j))))
				case 4:
					f.add(name, nil)
				case 5:
					f.Remove(name)
				}
				if conn, ok := f.Connection(name); ok && j%2 == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					_, _ = conn.Facts(ctx)
					cancel()
				}
				time.Sleep(time.Duration(j%3) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		name := multicluster.ClusterName(fmt.Sprintf("a/%d", i))
		f.add(name, servers[1].kubeconfig())
		f.connected(t, name)
	}
}

func TestStartTwice(t *testing.T) {
	f := startFleet(t, quick())
	await(t, "not started", func() bool {
		f.Provider.mu.RLock()
		defer f.Provider.mu.RUnlock()
		return f.root != nil
	})
	if err := f.Start(t.Context(), nil); err == nil {
		t.Error("started twice")
	}
}

// TestClusterAfterTheEnd isn't known: nothing is connected any more.
func TestClusterAfterTheEnd(t *testing.T) {
	s, f := newServer(t), startFleet(t, quick())
	f.add("a/early", s.kubeconfig())
	f.connected(t, "a/early")
	f.stop()
	f.add("a/late", s.kubeconfig())
	if names := f.Names(); len(names) != 0 {
		t.Errorf("%v are known", names)
	}
}
