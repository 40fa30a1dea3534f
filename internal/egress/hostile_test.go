// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestNoProxyForRefusedAddresses has a proxy that would go anywhere.
func TestNoProxyForRefusedAddresses(t *testing.T) {
	asked := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	client := newClient(t, Options{Origin: parse(t, "http://charts.invalid"), PlainHTTP: true})
	for _, host := range []string{
		"169.254.169.254", "169.254.169.254.", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1%25eth0]", "0.0.0.0",
		"2852039166", "0xa9fea9fe", "169.254.43518", "0251.0376.0251.0376", "169.254.169.0xfe",
		"169.254.169.25\uff14", "169\u3002254\u3002169\u3002254", "169.254.169.254\uff0e", "\u2461852039166",
	} {
		fault := ask(t, client, "http://"+host+"/latest")
		if fault == nil || fault.Reason != failure.ArtifactRefused || !strings.Contains(fault.Error(), "which no object may name") {
			t.Errorf("%s: got %v, want a refusal", host, fault)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the proxy was asked for %s", <-asked)
	}
	for _, host := range []string{"10.0.0.1", "[fd12::1]", "charts.invalid", "0xcafe.invalid", "1.charts.invalid."} {
		if fault := ask(t, client, "http://"+host+"/"); fault != nil {
			t.Errorf("%s: %v", host, fault)
		} else if got := <-asked; got != "http://"+host+"/" {
			t.Errorf("the proxy was asked for %s", got)
		}
	}
}

// TestNoWayBackToPlainHTTP begins without TLS, which the object allows.
func TestNoWayBackToPlainHTTP(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	defer plain.Close()
	secure, ca := startTLS(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
	first := httptest.NewServer(http.RedirectHandler(secure.URL, http.StatusFound))
	defer first.Close()
	client := newClient(t, Options{Origin: parse(t, first.URL), CA: ca, PlainHTTP: true, AllowLoopback: true})
	fault := ask(t, client, first.URL)
	if want := parse(t, secure.URL).Host + " redirects to " + parse(t, plain.URL).Host + " without TLS"; fault == nil || fault.Reason != failure.ArtifactRefused || !strings.Contains(fault.Error(), want) {
		t.Errorf("got %v, want %q", fault, want)
	}
}

// TestClientCertificateIsNotForProxies has a proxy with TLS, and a host behind it,
// which both ask for a certificate.
func TestClientCertificateIsNotForProxies(t *testing.T) {
	shown := make(chan int, 1)
	target, targetCA := startTLS(t, func(_ http.ResponseWriter, r *http.Request) { shown <- len(r.TLS.PeerCertificates) })
	authority := registry.NewAuthority(t)
	certificate, key := authority.Issue(t)
	address, shownToProxy := startTLSProxy(t, certificate, key, target.Listener.Addr().String())
	t.Setenv("HTTPS_PROXY", "https://user:password@"+address)
	client := newClient(t, Options{
		Origin: parse(t, "https://127.0.0.1.nip.example"), CA: append(targetCA, authority.PEM...), Certificate: certificate, Key: key,
	})
	// The host's certificate is for the address that the proxy has in its place.
	for _, transport := range []string{"own", "other"} {
		host := map[string]string{"own": "https://127.0.0.1.nip.example/", "other": "https://elsewhere.example/"}[transport]
		gate := client.Transport.(*guardedTransport)
		for _, way := range []http.RoundTripper{gate.own, gate.other} {
			way.(*http.Transport).TLSClientConfig.ServerName = "127.0.0.1"
		}
		if fault := ask(t, client, host); fault != nil {
			t.Fatal(fault)
		}
		must.Equal(t, 0, <-shownToProxy, transport)
		if got, want := <-shown, map[string]int{"own": 1, "other": 0}[transport]; got != want {
			t.Errorf("%s: the host saw %d certificates, want %d", transport, got, want)
		}
	}
}

// startTLSProxy starts a proxy that connects everybody to one target, and tells how
// many certificates it was shown.
func startTLSProxy(t *testing.T, certificate, key []byte, target string) (address string, shown chan int) {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	must.Succeed(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert,
	})
	must.Succeed(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	shown = make(chan int, 10)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go connect(from.(*tls.Conn), target, shown)
		}
	}()
	return listener.Addr().String(), shown
}

func connect(from *tls.Conn, target string, shown chan<- int) {
	defer func() { _ = from.Close() }()
	reader := bufio.NewReader(from)
	request, err := http.ReadRequest(reader)
	if err != nil || request.Method != http.MethodConnect || request.Header.Get("Proxy-Authorization") == "" {
		return
	}
	shown <- len(from.ConnectionState().PeerCertificates)
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(to, reader) }()
	_, _ = io.Copy(from, to)
}

// TestPlainHTTPIsForWhoAllowsIt has hosts without TLS, whatever it was that named them.
func TestPlainHTTPIsForWhoAllowsIt(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	defer plain.Close()
	for _, origin := range []string{plain.URL, "https://charts.example.org"} {
		client := newClient(t, Options{Origin: parse(t, origin), AllowLoopback: true})
		fault := ask(t, client, plain.URL)
		if want := parse(t, plain.URL).Host + " would be asked without TLS, which the object doesn't allow"; fault == nil || fault.Reason != failure.ArtifactRefused || !strings.Contains(fault.Error(), want) {
			t.Errorf("for %s: got %v, want %q", origin, fault, want)
		}
	}
}

// TestWhatARequestCarriesStaysWithItsHost follows redirects to other hosts, one of which
// leads back. All are this one: they differ by their ports.
func TestWhatARequestCarriesStaysWithItsHost(t *testing.T) {
	carried := []string{"Authorization", "Cookie", "Referer"}
	asked := map[string]http.Header{}
	var own, other *httptest.Server
	own = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked["own "+r.URL.Path] = r.Header
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/chart", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL+"/chart?signature=sentinel", http.StatusFound)
		case "/away-and-back":
			http.Redirect(w, r, other.URL+"/back", http.StatusFound)
		}
	}))
	defer own.Close()
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked["other "+r.URL.Path] = r.Header
		if r.URL.Path == "/back" {
			http.Redirect(w, r, own.URL+"/chosen-by-the-other", http.StatusFound)
		}
	}))
	defer other.Close()
	client := newClient(t, Options{Origin: parse(t, own.URL), PlainHTTP: true, AllowLoopback: true})
	for path, want := range map[string]map[string]bool{ // what is asked for on the way, and if it gets what the request carries
		"/moved":         {"own /moved": true, "own /chart": true},
		"/away":          {"own /away": true, "other /chart": false},
		"/away-and-back": {"own /away-and-back": true, "other /back": false, "own /chosen-by-the-other": false},
	} {
		clear(asked)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, own.URL+path+"?signature=sentinel", nil)
		must.Succeed(t, err)
		for _, header := range carried {
			request.Header.Set(header, "sentinel")
		}
		response, err := client.Do(request)
		must.Succeed(t, err)
		_ = response.Body.Close() // nothing is read from it
		if len(asked) != len(want) {
			t.Errorf("%s: %d requests, want %d", path, len(asked), len(want))
		}
		for where, gets := range want {
			for _, header := range carried {
				if got := asked[where].Get(header); (got != "") != gets {
					t.Errorf("%s: %s gets %s %q", path, where, header, got)
				}
			}
		}
	}
}
