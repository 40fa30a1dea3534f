// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// shown is what a host that gives nothing to strangers wants to see.
type shown struct {
	basic       string // user:password
	bearer      string
	identity    string // to be exchanged for bearer at a token service
	certificate []byte // of the client, in PEM
	query       string // of the URL
}

func (s shown) by(r *http.Request) bool {
	switch {
	case s.basic != "":
		return r.Header.Get("Authorization") == "Basic "+base64.StdEncoding.EncodeToString([]byte(s.basic))
	case s.bearer != "":
		return r.Header.Get("Authorization") == "Bearer "+s.bearer
	case s.certificate != nil:
		block, _ := pem.Decode(s.certificate)
		return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && bytes.Equal(r.TLS.PeerCertificates[0].Raw, block.Bytes)
	}
	return r.URL.RawQuery == s.query
}

// challenge asks for it.
func (s shown) challenge(w http.ResponseWriter, r *http.Request) {
	how := `Basic realm="charts"`
	if s.bearer != "" {
		how = `Bearer realm="https://` + r.Host + `/token",service="charts",scope="repository:` + publicationOf(r) + `/settings:pull"`
	}
	w.Header().Set("WWW-Authenticate", how)
	http.Error(w, "who asks? not "+fmt.Sprint(r.Header)+r.URL.RawQuery, http.StatusUnauthorized)
}

// publicationOf returns the name of the publication that a request is about.
func publicationOf(r *http.Request) string {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v2/"), githubAPI)
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}

// guarded are charts for clients that show a credential, by the publication's name.
type guarded struct {
	wanted  map[string]shown
	charts  map[string]published
	foreign *faulty.Server // where redirects lead to
}

// manners are how hosts treat clients that show the right credential, and what
// the add-on says then.
var manners = map[string]struct {
	reason string // "" for Ready
	treat  func(g *guarded, w http.ResponseWriter, r *http.Request)
}{
	"sound": {"", func(g *guarded, w http.ResponseWriter, r *http.Request) {
		if name := publicationOf(r); g.wanted[name].by(r) {
			g.charts[name].ServeHTTP(w, r)
		} else {
			g.wanted[name].challenge(w, r)
		}
	}},
	"unauthorized": {"SourceUnauthorized", func(g *guarded, w http.ResponseWriter, r *http.Request) {
		g.wanted[publicationOf(r)].challenge(w, r)
	}},
	"forbidden": {"SourceUnauthorized", func(g *guarded, w http.ResponseWriter, r *http.Request) {
		if g.wanted[publicationOf(r)].by(r) {
			http.Error(w, "not to "+fmt.Sprint(r.Header), http.StatusForbidden)
		} else {
			g.wanted[publicationOf(r)].challenge(w, r)
		}
	}},
	"redirecting": {"ArtifactNotFound", func(g *guarded, w http.ResponseWriter, r *http.Request) {
		if g.wanted[publicationOf(r)].by(r) {
			http.Redirect(w, r, g.foreign.URL(r.URL.Path), http.StatusTemporaryRedirect)
		} else {
			g.wanted[publicationOf(r)].challenge(w, r)
		}
	}},
	"talkative": {"SourceUnavailable", func(g *guarded, w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization") + r.URL.RawQuery
		switch {
		case r.URL.Query().Has("got"):
			http.Error(w, "you sent me "+got, http.StatusInternalServerError)
		case g.wanted[publicationOf(r)].by(r):
			query := r.URL.Query()
			query.Set("got", got)
			w.Header().Set("Warning", `199 - "you sent me `+got+`"`)
			http.Redirect(w, r, r.URL.Path+"?"+query.Encode(), http.StatusFound)
		default:
			g.wanted[publicationOf(r)].challenge(w, r)
		}
	}},
	"untrusted": {"SourceUntrusted", nil}, // nobody comes that far
}

// serve starts a host with the manners.
func (g *guarded) serve(t *testing.T, authority *registry.Authority, manner string) *faulty.Server {
	if manner == "untrusted" {
		authority = registry.NewAuthority(t)
	}
	return faulty.Start(t, authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			for _, wanted := range g.wanted {
				if wanted.identity != "" && r.FormValue("refresh_token") == wanted.identity {
					_ = json.NewEncoder(w).Encode(map[string]string{"access_token": wanted.bearer})
					return
				}
			}
			http.Error(w, "not with "+fmt.Sprint(r.Form), http.StatusUnauthorized)
			return
		}
		manners[manner].treat(g, w, r)
	}))
}

// guardedSources plants a secret in each kind of credential. It returns add-ons that
// use each of them at hosts of all manners, for each kind of source that takes it.
// The add-ons are by manner, with the reasons that they are to have. The instance's
// own credentials are put into a directory.
func (ss sentinels) guardedSources(tn *tenant, authority *registry.Authority, foreign *faulty.Server, own string) (addons map[string][]addonsv1.Addon, reasons map[string]string, servers []*faulty.Server) {
	t := tn.t
	origin := registry.Start(t, registry.Options{PlainHTTP: true})
	clients := registry.NewAuthority(t)
	certificate, key := clients.Issue(t)
	ss.note("tls.key", lineOf(key))
	basic := func(what string) (string, string) {
		return ss.plantPlain("the username of " + what), ss.plant("the password of " + what)
	}
	g := &guarded{wanted: map[string]shown{}, charts: map[string]published{}, foreign: foreign}
	hosts, ownHosts, tokenHosts := map[string]*faulty.Server{}, map[string]*faulty.Server{}, map[string]*faulty.Server{}
	for manner := range manners {
		for _, at := range []map[string]*faulty.Server{hosts, ownHosts, tokenHosts} {
			at[manner] = g.serve(t, authority, manner)
			servers = append(servers, at[manner])
		}
	}
	dockerConfig := func(at map[string]*faulty.Server, entry map[string]string, paths ...string) []byte {
		auths := map[string]any{}
		for _, server := range at {
			auths[server.Host] = entry
			for _, path := range paths {
				auths[server.Host+path] = entry
			}
		}
		data, err := json.Marshal(map[string]any{"auths": auths})
		must.Succeed(t, err)
		return data
	}

	// What is shown, and the Secret that it is in, if any.
	type credential struct {
		shown  shown
		secret map[string][]byte
		kinds  []string
		at     map[string]*faulty.Server
	}
	user, password := basic("a Secret")
	all := map[string]credential{
		"basic": {shown{basic: user + ":" + password}, map[string][]byte{"username": []byte(user), "password": []byte(password)}, sourceKinds, hosts},
		"cert":  {shown{certificate: certificate}, map[string][]byte{"tls.crt": certificate, "tls.key": key}, sourceKinds, hosts},
		"query": {shown: shown{query: "signature=" + ss.plantPlain("http.url")}, kinds: []string{"http"}, at: ownHosts},
	}
	token := ss.plantPlain("token")
	all["token"] = credential{shown{bearer: token}, map[string][]byte{"token": []byte(token)}, sourceKinds, hosts}
	registryToken := ss.plantPlain("registrytoken")
	all["registrytoken"] = credential{shown{bearer: registryToken}, map[string][]byte{".dockerconfigjson": dockerConfig(hosts, map[string]string{"registrytoken": registryToken})}, []string{"oci"}, hosts}
	identity := shown{identity: ss.plant("identitytoken"), bearer: ss.plantPlain("an access token")}
	all["identity"] = credential{identity, map[string][]byte{".dockerconfigjson": dockerConfig(hosts, map[string]string{"identitytoken": identity.identity})}, []string{"oci"}, hosts}
	user, password = basic("auths[].username")
	all["docker"] = credential{shown{basic: user + ":" + password}, map[string][]byte{".dockerconfigjson": dockerConfig(hosts, map[string]string{"username": user, "password": password})}, []string{"oci"}, hosts}
	user, password = basic("auths[].auth")
	all["auth"] = credential{shown{basic: user + ":" + password}, map[string][]byte{
		"config.json": dockerConfig(hosts, map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))})}, []string{"oci"}, hosts}
	// The instance's own: by host, and in a config.json, where they may be bound to a path.
	// Without one they aren't for http.
	user, password = basic("the instance, by host")
	all["own"] = credential{shown: shown{basic: user + ":" + password}, kinds: []string{"oci", "helm", "github"}, at: hosts}
	for _, server := range hosts {
		write(t, own, credentials.KeyOf(server.Host)+".username", []byte(user))
		write(t, own, credentials.KeyOf(server.Host)+".password", []byte(password+"\n"))
	}
	token = ss.plantPlain("the instance's token")
	all["own-token"] = credential{shown: shown{bearer: token}, kinds: []string{"github"}, at: tokenHosts}
	for _, server := range tokenHosts {
		write(t, own, credentials.KeyOf(server.Host)+".token", []byte(token+"\n"))
	}
	user, password = basic("the instance's config.json")
	all["own-config"] = credential{shown: shown{basic: user + ":" + password}, kinds: []string{"oci", "http"}, at: ownHosts}
	write(t, own, "config.json", dockerConfig(ownHosts, map[string]string{"username": user, "password": password}, "/own-config"))
	write(t, own, "ca.crt", authority.PEM)

	addons, reasons = map[string][]addonsv1.Addon{}, map[string]string{}
	for name, c := range all {
		g.wanted[name], g.charts[name] = c.shown, publish(t, origin, name)
		var ref *addonsv1.CredentialsReference
		if c.secret != nil {
			c.secret["ca.crt"] = authority.PEM
			secret := &corev1.Secret{ObjectMeta: tn.named(name), Data: c.secret}
			tn.create(secret)
			ref = &addonsv1.CredentialsReference{Name: name}
		}
		for manner := range manners {
			for _, kind := range c.kinds {
				addon := strings.Join([]string{name, kind, manner}, "-")
				addons[manner] = append(addons[manner], tn.addon(addon, "", func(a *addonsv1.Addon) {
					a.Chart = g.charts[name].from(kind, c.at[manner], withSecret(ref))
					if c.shown.query != "" {
						a.Chart.HTTP.URL += "?" + c.shown.query
					}
				}))
				reasons[addon] = manners[manner].reason
			}
		}
	}
	// An URL with the signature of a bucket is all that it takes: with it, nobody is unknown.
	reasons["query-http-unauthorized"] = "SourceUnauthorized"
	return addons, reasons, servers
}

// withSecret sets the secretRef of whatever source it is.
func withSecret(ref *addonsv1.CredentialsReference) func(*addonsv1.ChartSource) {
	return func(c *addonsv1.ChartSource) {
		switch {
		case c.OCI != nil:
			c.OCI.SecretRef = ref
		case c.Helm != nil:
			c.Helm.SecretRef = ref
		case c.HTTP != nil:
			c.HTTP.SecretRef = ref
		case c.GitHub != nil:
			c.GitHub.SecretRef = ref
		}
	}
}

// unreadable are add-ons with credentials that are none.
func (ss sentinels) unreadable(tn *tenant) []addonsv1.Addon {
	var addons []addonsv1.Addon
	certificate, _ := registry.NewAuthority(tn.t).Issue(tn.t)
	for name, data := range map[string]map[string][]byte{
		"no-json":   {".dockerconfigjson": []byte(`{"auths": {"registry.example.org": {"password": ` + ss.plant("a .dockerconfigjson that is no JSON") + `}}}`)},
		"no-base64": {".dockerconfigjson": []byte(`{"auths": {"127.0.0.1:1": {"auth": "!` + ss.plantPlain("an auth that isn't base64") + `"}}}`)},
		"no-map":    {"config.json": []byte(`{"auths": "` + ss.plantPlain("auths that are none") + `"}`)},
		"no-key":    {"tls.crt": certificate, "tls.key": []byte("-----BEGIN PRIVATE KEY-----\n" + ss.plantPlain("a tls.key that is none") + "\n-----END PRIVATE KEY-----\n")},
		"no-ca":     {"ca.crt": []byte(ss.plantPlain("a ca.crt that is none"))},
	} {
		secret := &corev1.Secret{ObjectMeta: tn.named(name), Data: data}
		tn.create(secret)
		addons = append(addons, tn.addon(name, "", func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{
				URL: "oci://127.0.0.1:1/charts/settings", SecretRef: &addonsv1.CredentialsReference{Name: name},
			}}
		}))
	}
	return addons
}

// lineOf is a line of a key that others don't have.
func lineOf(key []byte) string {
	lines := strings.Split(string(key), "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "PRIVATE KEY") }) || len(lines) < 4 {
		panic("no private key")
	}
	return lines[2]
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}
