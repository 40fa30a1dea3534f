// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// tokenWorld is a registry with a token service at another port, as public ones have.
type tokenWorld struct {
	registry, tokens *httptest.Server
	realm            string // of the token service, as the registry names it
	given            atomic.Int32
	asked            atomic.Int32
}

func startTokenWorld(t testing.TB) *tokenWorld {
	t.Helper()
	w := &tokenWorld{}
	archive := targz.Chart(t)
	w.tokens = serving(t, func(out http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		if user, password, _ := r.BasicAuth(); user != sentinelUser || password != sentinelPassword || r.URL.Query().Get("scope") != "repository:demo:pull" {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.given.Add(1)
		_, _ = io.WriteString(out, `{"token": "`+sentinelToken+`"}`)
	})
	w.realm = w.tokens.URL + "/token"
	w.registry = serving(t, func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+sentinelToken:
			out.Header().Set("WWW-Authenticate", `Bearer realm="`+w.realm+`",service="demo",scope="repository:demo:pull"`)
			out.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			serve(out, "application/octet-stream", string(archive))
		default:
			serve(out, manifestType, manifestOf([2]string{layout.ChartLayer, digestOf(archive)}))
		}
	})
	return w
}

// sources have these credentials of a host, and the chart that it has.
func (w *tokenWorld) sources(t testing.TB, host string, keys map[string]string) (*source.Sources, reference.Reference) {
	t.Helper()
	sources, _ := remoteSources(t, source.Options{CredentialsDir: ownKeys(t, host, keys)})
	return sources, plainly(inRegistry("oci://"+host+"/demo", "1.0.0"))
}

func TestTokenService(t *testing.T) {
	w := startTokenWorld(t)
	dir := t.TempDir()
	host := hostOf(w.registry)
	config := func(password string) {
		write(t, dir+"/config.json", dockerConfig(t, map[string]string{host: sentinelUser + ":" + password}))
	}
	config("sentinel-wrong")
	allowPlain(t, dir, host)
	sources, clock := remoteSources(t, source.Options{CredentialsDir: dir})
	ref := plainly(inRegistry("oci://"+host+"/demo", "1.0.0"))
	expectRefused(t, get(t, sources, ref), failure.SourceUnauthorized)
	config(sentinelPassword)
	expectFetched(t, sources, ref)
	clock.Step(time.Minute)
	expectResolved(t, sources, of("2.0.0", ref))
	must.Equal(t, 1, w.given.Load(), "tokens were asked for")
}

func TestTokenServiceThatFails(t *testing.T) {
	password := map[string]string{"username": sentinelUser, "password": sentinelPassword}
	for name, test := range map[string]struct {
		realm, reason string
		keys          map[string]string
	}{
		"another scheme":  {"ftp://127.0.0.1/token", failure.SourceUnavailable, nil},
		"no URL":          {"http://[", failure.SourceUnavailable, nil},
		"not there":       {"http://127.0.0.1:1/token", failure.SourceUnavailable, nil},
		"no realm":        {"", failure.ArtifactRefused, nil},
		"unauthorized":    {serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }).URL, failure.SourceUnauthorized, password},
		"forbidden":       {serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }).URL, failure.SourceUnauthorized, password},
		"no JSON":         {serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>sentinel") }).URL, failure.SourceUnavailable, password},
		"an empty answer": {serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }).URL, failure.SourceUnavailable, password},
	} {
		t.Run(name, func(t *testing.T) {
			w := startTokenWorld(t)
			w.realm = test.realm
			sources, ref := w.sources(t, hostOf(w.registry), test.keys)
			expectRefused(t, get(t, sources, ref), test.reason)
		})
	}
}

// TestTokenServiceAtAPrivateAddress has a token service with another name than the
// registry, as a GitLab at home has: the names are those of this host.
func TestTokenServiceAtAPrivateAddress(t *testing.T) {
	w := startTokenWorld(t)
	password := map[string]string{"username": sentinelUser, "password": sentinelPassword}
	both := maps.Clone(password)
	both["token"] = sentinelToken + "-old"
	for name, keys := range map[string]map[string]string{"a password": password, "a token": {"token": sentinelToken + "-old"}, "both": both, "nothing": nil} {
		for host, other := range map[string]string{"localhost": "127.0.0.1", "127.0.0.1": "localhost"} {
			t.Run(name+" to "+host, func(t *testing.T) {
				w.realm = "http://" + atHost(w.tokens, host) + "/token?sentinel"
				sources, ref := w.sources(t, atHost(w.registry, other), keys)
				err := get(t, sources, ref)
				if reason := asError(t, err).Reason; reason != failure.SourceUnavailable && reason != failure.SourceUnauthorized {
					t.Errorf("got %s: %v", reason, err)
				}
				must.Equal(t, 0, w.asked.Load(), "the token service was asked")
			})
		}
	}

	// The ways out.
	t.Run("under one name, at another port", func(t *testing.T) {
		for _, host := range []string{"localhost", "127.0.0.1"} {
			w.realm = "http://" + atHost(w.tokens, host) + "/token"
			sources, ref := w.sources(t, atHost(w.registry, host), password)
			expectFetched(t, sources, ref)
		}
	})
	t.Run("through a proxy that alone knows the names", func(t *testing.T) {
		behind := map[string]*httptest.Server{"registry.invalid": w.registry, "gitlab.invalid": w.tokens}
		proxy := serving(t, func(out http.ResponseWriter, r *http.Request) {
			behind[r.URL.Hostname()].Config.Handler.ServeHTTP(out, r)
		})
		t.Setenv("HTTP_PROXY", proxy.URL)
		w.realm = "http://gitlab.invalid/token"
		sources, ref := w.sources(t, "registry.invalid", password)
		expectFetched(t, sources, ref)
	})
}

// TestTokenServiceWithoutTLS is that of a registry with TLS. Whoever is between could read
// what it is shown, and the object doesn't say that this is all right.
func TestTokenServiceWithoutTLS(t *testing.T) {
	w := startTokenWorld(t)
	secure := httptest.NewTLSServer(w.registry.Config.Handler)
	defer secure.Close()
	host := hostOf(secure)
	key := credentials.KeyOf(host)
	for name, own := range map[string][]string{
		"a password":        {key + ".username", sentinelUser, key + ".password", sentinelPassword},
		"an identity token": {"config.json", `{"auths": {"` + host + `": {"identitytoken": "sentinel-identity"}}}`},
		"nothing":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
			sources, _ := remoteSources(t, source.Options{CredentialsDir: trusting(t, authority, own...)})
			err := get(t, sources, inRegistry("oci://"+host+"/demo", "1.0.0"))
			if reason := asError(t, err).Reason; reason != failure.SourceUnavailable && reason != failure.SourceUnauthorized {
				t.Errorf("got %s: %v", reason, err)
			}
			must.Equal(t, 0, w.asked.Load(), "the token service was asked")
		})
	}
}

// TestRegistryWantsAPassword has one with basic authentication, and credentials that are
// none, or half of one.
func TestRegistryWantsAPassword(t *testing.T) {
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}, PlainHTTP: true})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	c := newCluster(t)
	for i, keys := range []map[string]string{{"token": sentinelToken}, {"username": sentinelUser}, {"password": sentinelPassword}} {
		sources, _ := remoteSources(t, source.Options{Client: c, Metadata: c.metadata(), CredentialsDir: ownKeys(t, server.Host, keys)})
		name := fmt.Sprint("own-", i)
		object := secret(name)
		for key, value := range keys {
			object.Data[key] = []byte(value)
		}
		c.set(object)
		ref := plainly(inRegistry(server.URL("demo"), "1.0.0"))
		for _, ref := range []reference.Reference{ref, with(name, ref)} {
			err := get(t, sources, ref)
			if reason := asError(t, err).Reason; reason != failure.SourceUnavailable && reason != failure.SourceUnauthorized {
				t.Errorf("%v: got %s: %v", keys, reason, err)
			}
		}
	}
}
