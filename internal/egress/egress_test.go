// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/fleet/address"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	must.Succeed(t, err)
	return parsed
}

// ask expects a fault, and returns it.
func ask(t *testing.T, client *http.Client, at string) *Fault {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	must.Succeed(t, err)
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close() // nothing is read from it
		return nil
	}
	fault := Explain(t.Context(), request.URL.Host, err)
	if fault == nil {
		t.Fatalf("no fault in %v", err)
	}
	return fault
}

func newClient(t testing.TB, options Options) *http.Client {
	t.Helper()
	client, err := New(options)
	must.Succeed(t, err)
	return client
}

func TestAddressesNobodyMayName(t *testing.T) {
	for given, refused := range map[string]bool{
		"127.0.0.1": true, "::1": true, "0.0.0.0": true, "0.1.2.3": true, "169.254.169.254": true, "fe80::1": true,
		"fd00:ec2::254": true, "::ffff:169.254.169.254": true, "100.100.100.200": true, "224.0.0.1": true, "255.255.255.255": true,
		"192.0.0.192": true, "fd00:ec2::23": true,
		"64:ff9b::a9fe:a9fe": true, "64:ff9b:1::a9fe:a9fe": true, "64:ff9b::7f00:1": true, "2002:a9fe:a9fe::1": true, "::169.254.169.254": true,
		"fd00:42::42":              true,
		"64:ff9b:1:a9fe:a9:fe00::": true, "64:ff9b:1:a9:fe:a9fe::": true, "64:ff9b:1:0:a9:fea9:fe00::": true, // as /48, /56 and /64
		"2001:0:a9fe:a9fe::f7f7:f7f7": true, "2001:0:808:808:8000:63bf:5601:5601": true, // Teredo: server, client
		"2001:db8::5efe:a9fe:a9fe": true, "2001:db8::200:5efe:a9fe:a9fe": true, "::ffff:0:a9fe:a9fe": true,
		"64:ff9b:1::808:808": false, "64:ff9b:1:808:8:800::": false, "2001:0:808:808::f7f7:f7f7": false,
		"2001:db8::5efe:808:808": false, "::ffff:0:808:808": false, "2001:db8::a9fe:a9fe": false,
		"64:ff9b::808:808": false, "2002:808:808::1": false,
		"10.0.0.1": false, "192.168.1.1": false, "8.8.8.8": false, "fd12::1": false,
	} {
		if got := address.Refused(netip.MustParseAddr(given), false); (got != "") != refused {
			t.Errorf("%s: %q", given, got)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := newClient(t, Options{Origin: parse(t, server.URL), PlainHTTP: true})
	if fault := ask(t, client, server.URL); fault == nil || fault.Reason != failure.ArtifactRefused {
		t.Errorf("got %v, want a refusal of this host", fault)
	}
	if fault := ask(t, client, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)); fault == nil || fault.Reason != failure.ArtifactRefused {
		t.Errorf("got %v, want a refusal of a name of this host", fault)
	}
}

// What leads out of a path isn't asked for: whose credentials are for the path would be
// sent elsewhere.
func TestPathsThatLeadElsewhere(t *testing.T) {
	asked := 0
	server, ca := startTLS(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/team-a/%2e%2e/team-b", http.StatusFound)
		}
	})
	client := newClient(t, Options{Origin: parse(t, server.URL), CA: ca, AllowLoopback: true})
	for path, refused := range map[string]bool{
		"/team-a/../team-b": true, "/team-a/./x": true, "/..": true, "/team-a/%2e%2E/team-b": true, "/team-a/.%2e/team-b": true,
		"/team-a/%252e%252e/team-b": true, "/team-a/..%2fteam-b": true, "/team-a/..%5cteam-b": true, "/team-a/..;x=1/team-b": true, "/moved": true,
		"/team-a/...": false, "/team-a/..b/.c": false, "/team-a/%20/x": false, "/team-a?x=/../": false,
	} {
		before := asked
		fault := ask(t, client, server.URL+path)
		if got := fault != nil && fault.Reason == failure.ArtifactRefused; got != refused {
			t.Errorf("%s: %v", path, fault)
		}
		if most := map[string]int{"/moved": 1}[path]; refused && asked-before > most {
			t.Errorf("%s was sent", path)
		}
	}
}

// startTLS starts a server that asks for a client's certificate, but needs none.
func startTLS(t testing.TB, handler http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	authority := registry.NewAuthority(t)
	certificate, key := authority.Issue(t)
	pair, err := tls.X509KeyPair(certificate, key)
	must.Succeed(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, authority.PEM
}

func TestClientCertificateStaysWithItsHost(t *testing.T) {
	shown := make(chan []*x509.Certificate, 2)
	tell := func(_ http.ResponseWriter, r *http.Request) { shown <- r.TLS.PeerCertificates }
	other, otherCA := startTLS(t, tell)
	own, ownCA := startTLS(t, func(w http.ResponseWriter, r *http.Request) {
		tell(w, r)
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	authority := registry.NewAuthority(t)
	certificate, key := authority.Issue(t)
	client := newClient(t, Options{
		Origin: parse(t, own.URL), CA: append(ownCA, otherCA...), Certificate: certificate, Key: key, AllowLoopback: true,
	})
	if fault := ask(t, client, own.URL); fault != nil {
		t.Fatal(fault)
	}
	must.Len(t, 1, <-shown, "its own host didn't see the certificate")
	must.Len(t, 0, <-shown, "another host saw the certificate")
}

func TestProxyFromTheEnvironment(t *testing.T) {
	proxied := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proxied <- r.URL.String() }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "direct.invalid")
	client := newClient(t, Options{Origin: parse(t, "http://charts.invalid"), PlainHTTP: true})
	if fault := ask(t, client, "http://charts.invalid/index.yaml"); fault != nil {
		t.Fatal(fault) // the proxy itself may be on this host
	}
	must.Equal(t, "http://charts.invalid/index.yaml", <-proxied, "the proxy was asked for")
	if fault := ask(t, client, "http://direct.invalid/"); fault == nil || fault.Reason != failure.SourceUnavailable {
		t.Errorf("got %v", fault)
	}
}

func TestRetryAfter(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "99999999": maxRetryAfter, "soon": 0,
		clock.Now().Add(time.Minute).UTC().Format(http.TimeFormat): time.Minute,
	} {
		if got := (&guardedTransport{Options: Options{Clock: clock}}).retryAfter(http.Header{"Retry-After": {header}}); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

func TestCredentialsThatArent(t *testing.T) {
	for want, options := range map[string]Options{
		"ca.crt":  {CA: []byte("sentinel")},
		"tls.crt": {Certificate: []byte("sentinel")},
	} {
		options.Origin = parse(t, "https://a")
		if _, err := New(options); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "sentinel") {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}
