// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
)

// answering starts a proxy that answers every request, CONNECT too, with a code.
func answering(t *testing.T, code int) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// silent starts what isn't a SOCKS proxy, but listens as one would.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // the test is over
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "no SOCKS\n")
			_ = conn.Close() // nothing else is said
		}
	}()
	return listener.Addr().String()
}

// What the proxy does wrong isn't said of the host behind it, nor is its address told.
func TestFaultsOfTheProxy(t *testing.T) {
	const host = "registry.example.org"
	wayOut := "; check the proxy, or correct HTTPS_PROXY, HTTP_PROXY or NO_PROXY of the provider"
	for name, tc := range map[string]struct {
		proxy, https, http string // what is said of it; "" if it is the host's own answer
	}{
		"down":             {"http://sentinel:sentinel@127.0.0.1:1", "refuses connections", "refuses connections"},
		"no scheme":        {"127.0.0.1:1", "refuses connections", "refuses connections"},
		"no such name":     {"http://sentinel.invalid:3128", "has a name that can't be resolved", "has a name that can't be resolved"},
		"wants to know":    {answering(t, http.StatusProxyAuthRequired), "answers 407 Proxy Authentication Required", "answers 407 Proxy Authentication Required"},
		"doesn't let pass": {answering(t, http.StatusForbidden), "answers 403 Forbidden", ""},
		"can't reach it":   {answering(t, http.StatusBadGateway), "answers 502 Bad Gateway", ""},
		"no TLS":           {strings.Replace(answering(t, http.StatusOK), "http://", "https://", 1), "fails the TLS handshake", "fails the TLS handshake"},
		"SOCKS, down":      {"socks5://127.0.0.1:1", "refuses connections", "refuses connections"},
		"no SOCKS":         {"socks5://" + silent(t), "broke off the connection", "broke off the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HTTPS_PROXY", tc.proxy)
			t.Setenv("HTTP_PROXY", tc.proxy)
			client := newClient(t, Options{Origin: parse(t, "https://"+host), PlainHTTP: true})
			for scheme, says := range map[string]string{"https": tc.https, "http": tc.http} {
				if says == "" {
					continue
				}
				fault := ask(t, client, scheme+"://"+host+"/v2/")
				if fault == nil || fault.Reason != failure.SourceUnavailable || !strings.HasPrefix(fault.Error(), "the proxy on the way to "+host+" "+says) || !strings.HasSuffix(fault.Error(), wayOut) {
					t.Errorf("%s: got %v", scheme, fault)
				}
				if fault != nil && (strings.Contains(fault.Error(), "sentinel") || strings.Contains(fault.Error(), "127.0.0.1")) {
					t.Errorf("%s: it tells where the proxy is: %v", scheme, fault)
				}
			}
		})
	}
}

// What the host behind a proxy does wrong is said of the host.
func TestFaultsBehindTheProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", answering(t, http.StatusForbidden))
	client := newClient(t, Options{Origin: parse(t, "http://registry.example.org"), PlainHTTP: true})
	fault := ask(t, client, "http://registry.example.org/v2/")
	if fault == nil || fault.Reason != failure.SourceUnauthorized || fault.Error() != "registry.example.org answers 403 Forbidden" {
		t.Fatalf("got %v", fault)
	}
	if fault.Status != http.StatusForbidden || !SameOrigin(fault.From, parse(t, "http://registry.example.org:80")) {
		t.Errorf("it is %d from %s", fault.Status, fault.From)
	}
}

func TestPortThatThereIsNot(t *testing.T) {
	client := newClient(t, Options{Origin: parse(t, "https://registry.example.org:99999")})
	fault := ask(t, client, "https://192.0.2.1:99999/v2/")
	if fault == nil || fault.Reason != failure.ArtifactRefused || !strings.Contains(fault.Error(), "its port, which is 65535 at most") {
		t.Errorf("got %v", fault)
	}
}

func TestRateLimits(t *testing.T) {
	now := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	reset := fmt.Sprint(now.Add(10 * time.Minute).Unix())
	for name, tc := range map[string]struct {
		code   int
		header map[string]string
		reason string
		after  time.Duration
	}{
		"used up":                {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, failure.SourceUnavailable, 10*time.Minute + time.Second},
		"used up, 429":           {429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, failure.SourceUnavailable, 10*time.Minute + time.Second},
		"just over":              {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, failure.SourceUnavailable, time.Second},
		"for ever":               {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999999"}, failure.SourceUnavailable, maxRetryAfter},
		"no number":              {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, failure.SourceUnauthorized, 0},
		"some left":              {403, map[string]string{"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": reset}, failure.SourceUnauthorized, 0},
		"an answer with a limit": {200, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guardedTransport{Options: Options{Clock: clocktesting.NewFakePassiveClock(now)}}
			response := &http.Response{StatusCode: tc.code, Header: http.Header{}, Body: http.NoBody}
			for name, value := range tc.header {
				response.Header.Set(name, value)
			}
			err := g.evaluate("api.example.org", response)
			if tc.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			fault := Explain(t.Context(), "", err)
			if fault == nil || fault.Reason != tc.reason || fault.RetryAfter != tc.after {
				t.Fatalf("%+v after %s", fault, fault.RetryAfter)
			}
		})
	}
}
