// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestRegistryWantsAPassword(t *testing.T) {
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}, PlainHTTP: true})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	key := credentials.KeyOf(server.Host)
	ref := inRegistry(server.URL("demo"), "1.0.0")
	plainly(&ref)
	const said = " takes username and password only (Basic authentication), and not a token; "
	const half = " takes username and password (Basic authentication), and "

	t.Run("of the instance", func(t *testing.T) {
		for name, test := range map[string]struct {
			own  map[string]string
			said string
		}{
			"a token":     {map[string]string{"token": sentinelToken}, said},
			"no password": {map[string]string{"username": sentinelUser}, half + "password is missing; "},
			"no username": {map[string]string{"password": sentinelPassword}, half + "username is missing; "},
		} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				for part, value := range test.own {
					write(t, dir+"/"+key+"."+part, value)
				}
				allowPlain(t, dir, server.Host)
				sources, _ := remoteSources(t, Options{CredentialsDir: dir})
				_, err := sources.Resolve(t.Context(), ref)
				expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+test.said+
					"have both added to the provider instance's own Secret chandler-credentials (config.json, or "+key+".username and "+key+".password), or name another Secret in its secretRef")
				if !asError(t, err).Wait {
					t.Error("no event is waited for")
				}
			})
		}
	})
	t.Run("of a Secret", func(t *testing.T) {
		c := startCluster(t)
		sources, _ := remoteSources(t, Options{Client: c.counted, Metadata: c.metadata})
		for name, data := range map[string]map[string]string{
			"token":    {"token": sentinelToken},
			"identity": {".dockerconfigjson": `{"auths": {"` + server.Host + `": {"identitytoken": "` + sentinelToken + `"}}}`},
		} {
			secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, StringData: data}
			if err := c.Create(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			own := ref
			own.Chart.OCI = own.Chart.OCI.DeepCopy()
			own.Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: name}
			_, err := sources.Resolve(t.Context(), own)
			expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+said+
				"add username and password to Secret team-a/"+name+", in place of what is there for it")
		}
		for name, data := range map[string]map[string]string{"password": {"username": sentinelUser}, "username": {"password": sentinelPassword}} {
			secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "without-" + name}, StringData: data}
			if err := c.Create(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			own := ref
			own.Chart.OCI = own.Chart.OCI.DeepCopy()
			own.Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: "without-" + name}
			_, err := sources.Resolve(t.Context(), own)
			expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+half+name+" is missing; add it to Secret team-a/without-"+name)
		}
	})
}

// tokenWorld is a registry with a token service at another port.
type tokenWorld struct {
	registry, tokens *httptest.Server
	realm            string // of the token service, as the registry names it
	archive          []byte
}

func startTokenWorld(t testing.TB) *tokenWorld {
	t.Helper()
	w := &tokenWorld{archive: targz.Chart(t)}
	w.tokens = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != sentinelUser || password != sentinelPassword {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(out, `{"token": "`+sentinelToken+`"}`)
	}))
	t.Cleanup(w.tokens.Close)
	w.registry = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+sentinelToken:
			out.Header().Set("WWW-Authenticate", `Bearer realm="`+w.realm+`",service="demo",scope="repository:demo:pull"`)
			out.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			serve(out, "application/octet-stream", string(w.archive))
		default:
			serve(out, manifestType, manifestOf([2]string{layout.ChartLayer, artifact.Content{Archive: w.archive}.Digest()}))
		}
	}))
	t.Cleanup(w.registry.Close)
	return w
}

// atHost is the address of a server, with another name for its host.
func atHost(server *httptest.Server, host string) string {
	at, _ := url.Parse(server.URL)
	return net.JoinHostPort(host, at.Port())
}

// sources have these credentials of a host, and the chart that it has.
func (w *tokenWorld) sources(t testing.TB, host string, keys map[string]string) (*Sources, reference.Reference) {
	t.Helper()
	dir := t.TempDir()
	for part, value := range keys {
		write(t, dir+"/"+credentials.KeyOf(host)+"."+part, value)
	}
	allowPlain(t, dir, host)
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRegistry("oci://"+host+"/demo", "1.0.0")
	plainly(&ref)
	return sources, ref
}

// TestTokenServiceAtAPrivateAddress has a token service with another name than the
// registry, as a GitLab at home has: the names are those of this host.
func TestTokenServiceAtAPrivateAddress(t *testing.T) {
	w := startTokenWorld(t)
	password := map[string]string{"username": sentinelUser, "password": sentinelPassword}
	both := maps.Clone(password)
	both["token"] = sentinelToken
	for name, keys := range map[string]map[string]string{
		"a password": password, "a token": {"token": sentinelToken}, "both": both, "nothing": nil,
	} {
		for kind, host := range map[string]string{"name": "localhost", "address": "127.0.0.1"} {
			t.Run(name+" to a "+kind, func(t *testing.T) {
				other := map[string]string{"localhost": "127.0.0.1", "127.0.0.1": "localhost"}[host]
				w.realm = "http://" + atHost(w.tokens, host) + "/jwt/auth?sentinel"
				at := atHost(w.registry, other)
				sources, ref := w.sources(t, at, keys)
				_, err := sources.Resolve(t.Context(), ref)
				expectError(t, err, failure.SourceUnavailable, "chart.oci: oci://"+at+"/demo:1.0.0: "+at+" refers to a token service at "+atHost(w.tokens, host)+
					", which is a private address of another host: it gets no credentials, whatever they are. "+
					"Have the registry name a token service under its own host name; the port may be another one")
			})
		}
	}

	// The ways out.
	t.Run("under one name, at another port", func(t *testing.T) {
		for _, host := range []string{"localhost", "127.0.0.1"} {
			w.realm = "http://" + atHost(w.tokens, host) + "/jwt/auth"
			sources, ref := w.sources(t, atHost(w.registry, host), password)
			expectFetched(t, sources, ref)
		}
	})
	t.Run("through a proxy that alone knows the names", func(t *testing.T) {
		behind := map[string]*httptest.Server{"registry.invalid": w.registry, "gitlab.invalid": w.tokens}
		proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			behind[r.URL.Hostname()].Config.Handler.ServeHTTP(out, r)
		}))
		defer proxy.Close()
		t.Setenv("HTTP_PROXY", proxy.URL)
		w.realm = "http://gitlab.invalid/jwt/auth"
		sources, ref := w.sources(t, "registry.invalid", password)
		expectFetched(t, sources, ref)
	})
}

func TestTokenServiceThatFails(t *testing.T) {
	for name, test := range map[string]struct{ realm, reason, says string }{
		"another scheme": {"ftp://127.0.0.1/token", failure.SourceUnavailable, "answers with what can't be used"},
		"no URL":         {"http://[", failure.SourceUnavailable, "answers with what can't be used"},
		"not there":      {"http://127.0.0.1:1/token", failure.SourceUnavailable, "127.0.0.1:1 refuses connections"},
		"no realm":       {"", failure.SourceUnavailable, "answers with what can't be used"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startTokenWorld(t)
			w.realm = test.realm
			sources, ref := w.sources(t, atHost(w.registry, "127.0.0.1"), nil)
			_, err := sources.Resolve(t.Context(), ref)
			if known := asError(t, err); known.Reason != test.reason || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %s: %s", known.Reason, err)
			}
		})
	}
}
