// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

func TestFor(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("docker:sec:ret"))
	config := []byte(`{"credsStore": "never-started", "auths": {
		"https://index.docker.io/v1/": {"auth": "` + auth + `"},
		"registry.example.org": {"username": "all", "password": "p"},
		"registry.example.org/team": {"username": "team", "password": "p"},
		"registry.example.org:5000": {"username": "port", "password": "p"},
		"https://token.example.org": {"username": "<token>", "identitytoken": "identity"},
		"GHCR.io/v2/": {"registrytoken": "token"}}}`)
	tests := map[string]struct {
		data       map[string][]byte
		bound      bool
		host, path string
		want       Credential
	}{
		"a Secret's keys":               {map[string][]byte{"username": []byte("u\n"), "password": []byte("p\r\n")}, false, "a", "", Credential{Username: "u", Password: "p"}},
		"a token":                       {map[string][]byte{"token": []byte("t")}, false, "a", "", Credential{Token: "t"}},
		"certificates":                  {map[string][]byte{"ca.crt": []byte("c"), "tls.crt": []byte("d"), "tls.key": []byte("k")}, false, "a", "", Credential{CA: []byte("c"), Certificate: []byte("d"), Key: []byte("k")}},
		"own keys without a host":       {map[string][]byte{"username": []byte("u"), "password": []byte("p"), "tls.crt": []byte("d")}, true, "a", "", Credential{}},
		"own authority for all":         {map[string][]byte{"ca.crt": []byte("c")}, true, "a", "", Credential{CA: []byte("c")}},
		"own keys of the host":          {map[string][]byte{"a_8443.username": []byte("u"), "a_8443.password": []byte("p"), "a.token": []byte("t")}, true, "A:8443", "", Credential{Username: "u", Password: "p"}},
		"own keys of an IPv6 address":   {map[string][]byte{"__1_5000.token": []byte("t")}, true, "[::1]:5000", "", Credential{Token: "t"}},
		"own keys of one without port":  {map[string][]byte{"__1_5000.token": []byte("t")}, true, "[::1:5000]", "", Credential{}},
		"own keys of Docker Hub":        {map[string][]byte{"docker.io.username": []byte("u"), "index.docker.io.password": []byte("other")}, true, "registry-1.docker.io", "library/x", Credential{Username: "u"}},
		"own keys of a host like them":  {map[string][]byte{"a_8443.token": []byte("t")}, true, "a_8443", "", Credential{}},
		"a Secret of a host like that":  {map[string][]byte{"a_8443.token": []byte("t"), "token": []byte("mine")}, false, "a_8443", "", Credential{Token: "mine"}},
		"own keys of another host":      {map[string][]byte{"a.token": []byte("t")}, true, "b.a", "", Credential{}},
		"keys before the configuration": {map[string][]byte{"config.json": config, "username": []byte("u")}, false, "registry.example.org", "", Credential{Username: "u"}},
		"Docker Hub":                    {map[string][]byte{".dockerconfigjson": config}, false, "registry-1.docker.io", "library/x", Credential{Username: "docker", Password: "sec:ret"}},
		"a registry":                    {map[string][]byte{"config.json": config}, true, "registry.example.org:443", "teams/x", Credential{Username: "all", Password: "p"}},
		"a path of it":                  {map[string][]byte{"config.json": config}, true, "registry.example.org", "/team/x/", Credential{Username: "team", Password: "p"}},
		"another port":                  {map[string][]byte{"config.json": config}, true, "registry.example.org:5000", "team/x", Credential{Username: "port", Password: "p"}},
		"an identity token":             {map[string][]byte{"config.json": config}, true, "token.example.org", "", Credential{IdentityToken: "identity"}},
		"a registry's token":            {map[string][]byte{"config.json": config}, true, "ghcr.io", "x", Credential{Token: "token"}},
		"an unknown registry":           {map[string][]byte{"config.json": config}, true, "evil.example.org", "", Credential{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := newSet(test.data, test.bound)
			must.Succeed(t, err)
			got, err := set.For(Host{Name: test.host, Path: test.path})
			must.Succeed(t, err)
			if got.Fingerprint() != test.want.Fingerprint() {
				t.Errorf("got %q %q %q %q", got.Username, got.Password, got.Token, got.IdentityToken)
			}
		})
	}
}

// What is bound, and may be asked for any path, is given for the paths alone that it is for.
func TestForAnyPath(t *testing.T) {
	set, err := newSet(map[string][]byte{
		"a.token": []byte("t"), "a.tls.crt": []byte("d"), "a.ca.crt": []byte("c"), "token": []byte("all"),
		"config.json": []byte(`{"auths": {"a": {"username": "all"}, "a/team": {"username": "team"}}}`),
	}, true)
	must.Succeed(t, err)
	for path, want := range map[string]string{
		"team": "team", "/team/x": "team", "teams/x": "", "": "", "other": "",
		"team/../other": "", "team/%2e%2e/other": "", "other/../team": "",
	} {
		got, err := set.For(Host{Name: "a", Path: path, AnyPath: true})
		if err != nil || got.Username != want || got.Token != "" || len(got.Certificate) > 0 || string(got.CA) != "c" {
			t.Errorf("%q: got user %q, token %q, certificate %q, authority %q, %v", path, got.Username, got.Token, got.Certificate, got.CA, err)
		}
		set := set
		set.bound = false
		if got, err := set.For(Host{Name: "a", Path: path, AnyPath: true}); err != nil || got.Token == "" {
			t.Errorf("%q: a Secret that an object names gives nothing: %v", path, err)
		}
	}
}

func TestErrorsQuoteNothing(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"no JSON":     {".dockerconfigjson": []byte("sentinel")},
		"wrong types": {"config.json": []byte(`{"auths": {"a": {"auth": {"sentinel": 1}}}}`)},
		"no base64":   {"config.json": []byte(`{"auths": {"a": {"auth": "!sentinel"}}}`)},
		"no colon":    {"config.json": []byte(`{"auths": {"a": {"auth": "c2VudGluZWw="}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := FromSecret(data)
			if err == nil {
				_, err = set.For(Host{Name: "a"})
			}
			if err == nil || strings.Contains(err.Error(), "sentinel") {
				t.Errorf("got %v", err)
			}
		})
	}
	secret := Credential{Username: "sentinel", Password: "sentinel", Token: "sentinel", Key: []byte("sentinel")}
	if text := fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, &secret); strings.Contains(text, "sentinel") {
		t.Errorf("it prints as %s", text)
	}
}

func TestDirectory(t *testing.T) {
	load := func(dir string) Credential {
		t.Helper()
		set, err := Directory(dir).Load()
		must.Succeed(t, err)
		found, err := set.For(Host{Name: "a"})
		must.Succeed(t, err)
		return found
	}
	if got := load(""); !got.IsZero() {
		t.Error("no directory has credentials")
	}
	dir := filepath.Join(t.TempDir(), "credentials")
	if got := load(dir); !got.IsZero() {
		t.Error("a missing directory has credentials")
	}
	// As Kubernetes mounts a Secret, and swaps its content.
	for i, user := range []string{"first", "second"} {
		version := filepath.Join(dir, fmt.Sprintf("..version-%d", i))
		must.Succeed(t, os.MkdirAll(version, 0o750))
		must.Succeed(t, os.WriteFile(filepath.Join(version, "a.username"), []byte(user), 0o600))
		_ = os.Remove(filepath.Join(dir, "..data")) // of the version before
		must.Succeed(t, os.Symlink(filepath.Base(version), filepath.Join(dir, "..data")))
		if i == 0 {
			must.Succeed(t, os.Symlink("..data/a.username", filepath.Join(dir, "a.username")))
		}
		if got := load(dir); got.Username != user {
			t.Errorf("user %q, want %q", got.Username, user)
		}
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, maxTotal+1), 0o600))
	if _, err := Directory(dir).Load(); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

func FuzzDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths": {"https://index.docker.io/v1/": {"auth": "dTpw"}, "a/b": {"username": "u"}}}`), "a", "b/c")
	f.Fuzz(func(_ *testing.T, data []byte, host, path string) {
		if set, err := FromSecret(map[string][]byte{KeyConfig: data}); err == nil {
			_, _ = set.For(Host{Name: host, Path: path}) // it is about panics
		}
	})
}
