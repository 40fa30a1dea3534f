// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// TestPlainHTTP has what is bound to a host, which an object wants to be asked without TLS.
func TestPlainHTTP(t *testing.T) {
	const config = `{"auths": {"a:80": {"username": "u", "password": "p"}, "docker.io": {"username": "u", "password": "p"}}}`
	for name, test := range map[string]struct {
		data map[string]string
		free bool // not bound
		host string
		want Credential
	}{
		"keys":                    {map[string]string{"a_80.token": "t", "a_80.ca.crt": "c", "a_80.tls.crt": "d"}, false, "a:80", Credential{CA: []byte("c")}},
		"keys, allowed":           {map[string]string{"a_80.token": "t", "a_80.plain-http": "true\n"}, false, "A:80", Credential{Token: "t"}},
		"keys, not allowed":       {map[string]string{"a_80.token": "t", "a_80.plain-http": "yes"}, false, "a:80", Credential{}},
		"allowed for another one": {map[string]string{"a_80.token": "t", "a.plain-http": "true", "plain-http": "true"}, false, "a:80", Credential{}},
		"configuration":           {map[string]string{"config.json": config, "ca.crt": "c"}, false, "a:80", Credential{CA: []byte("c")}},
		"configuration, allowed":  {map[string]string{"config.json": config, "a_80.plain-http": "true"}, false, "a:80", Credential{Username: "u", Password: "p"}},
		"Docker Hub, allowed":     {map[string]string{"config.json": config, "docker.io.plain-http": "true"}, false, "registry-1.docker.io", Credential{Username: "u", Password: "p"}},
		"a Secret of the object":  {map[string]string{"token": "t"}, true, "a:80", Credential{Token: "t"}},
	} {
		data := map[string][]byte{}
		for key, value := range test.data {
			data[key] = []byte(value)
		}
		set, err := newSet(data, !test.free)
		must.Succeed(t, err)
		got, err := set.For(Host{Name: test.host, PlainHTTP: true})
		if err != nil || got.Fingerprint() != test.want.Fingerprint() {
			t.Errorf("%s: got %q %q %q %s, %v", name, got.Username, got.Token, got.Certificate, got.CA, err)
		}
	}
}

// TestNamesOfOnePlace has several entries for one place, each time in another order.
func TestNamesOfOnePlace(t *testing.T) {
	for name, test := range map[string]struct{ auths, host, path, want string }{
		"Docker Hub":             {`"docker.io": {"username": "old"}, "https://index.docker.io/v1/": {"username": "login"}, "registry-1.docker.io": {"username": "host"}`, "registry-1.docker.io", "library/x", "login"},
		"an empty entry":         {`"r.example.org": {}, "https://r.example.org": {"username": "u"}`, "r.example.org", "x", "u"},
		"with and without https": {`"https://r.example.org": {"username": "old"}, "r.example.org": {"username": "login"}`, "r.example.org", "x", "login"},
		"a path":                 {`"http://r.example.org/a": {"username": "old"}, "r.example.org/a": {"username": "login"}, "r.example.org": {"username": "all"}`, "r.example.org", "a/b", "login"},
		"neither as by login":    {`"https://r.example.org": {"username": "2"}, "http://r.example.org/v2/": {"username": "1"}`, "r.example.org", "x", "1"},
	} {
		for range 50 {
			set, err := FromSecret(map[string][]byte{KeyConfig: []byte(`{"auths": {` + test.auths + `}}`)})
			must.Succeed(t, err)
			if got, err := set.For(Host{Name: test.host, Path: test.path}); err != nil || got.Username != test.want {
				t.Fatalf("%s: got %q, want %q; %v", name, got.Username, test.want, err)
			}
		}
	}
}

// TestBrokenEntries has entries that can't be used beside one that can.
func TestBrokenEntries(t *testing.T) {
	set, err := FromSecret(map[string][]byte{KeyConfig: []byte(`{"auths": {
		"good.example.org": {"username": "u", "password": "p"}, "colon.example.org": {"auth": "c2VudGluZWw="},
		"good.example.org/team": {"auth": {"sentinel": 1}}}}`)})
	must.Succeed(t, err)
	for _, test := range []struct{ host, path, says string }{
		{"good.example.org", "x", ""},
		{"other.example.org", "x", ""},
		{"colon.example.org", "x", `key config.json: auths["colon.example.org"] has an auth that isn't base64 of username:password; correct it`},
		{"good.example.org", "team/x", `key config.json: auths["good.example.org/team"] isn't as` + " `docker login` writes it; correct it"},
	} {
		_, err := set.For(Host{Name: test.host, Path: test.path})
		if (err == nil) != (test.says == "") || err != nil && (err.Error() != test.says || strings.Contains(err.Error(), "sentinel")) {
			t.Errorf("%s/%s: got %v, want %q", test.host, test.path, err, test.says)
		}
	}
}
