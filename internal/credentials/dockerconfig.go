// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/egress"
)

// dockerConfig are the credentials of a config.json, in the order in which they count.
// Programs that it names (credsStore, credHelpers) are never started.
type dockerConfig []registry

// registry is one entry: for a host, or for a path below it.
type registry struct {
	name       string // as it is written
	host, path string
	credential Credential
	broken     error // it can't be used
}

// parseDockerConfig reads what is at a key. Its errors name the key.
func parseDockerConfig(key string, data []byte) (dockerConfig, error) {
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("key %s is no JSON as `docker login` writes it; correct it", key) // the parser's error may quote it
	}
	var all dockerConfig
	for name, entry := range config.Auths {
		host, path := splitName(name)
		one := registry{name: name, host: host, path: path}
		one.credential, one.broken = parseEntry(entry)
		if one.broken != nil {
			one.broken = fmt.Errorf("key %s: auths[%.128q] %w", key, name, one.broken)
		}
		// Entries that a credential helper is for are empty.
		if one.broken != nil || !one.credential.IsZero() {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b registry) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// parseEntry quotes nothing of the entry in its errors.
func parseEntry(data []byte) (Credential, error) {
	var entry struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		return Credential{}, errors.New("isn't as `docker login` writes it; correct it")
	}
	credential := Credential{
		Username: entry.Username, Password: entry.Password,
		IdentityToken: entry.IdentityToken, Token: entry.RegistryToken,
	}
	if entry.Auth != "" {
		decoded, err := base64.StdEncoding.DecodeString(entry.Auth)
		username, password, found := strings.Cut(string(decoded), ":")
		if err != nil || !found {
			return Credential{}, errors.New("has an auth that isn't base64 of username:password; correct it")
		}
		credential.Username, credential.Password = username, strings.TrimRight(password, "\x00")
	}
	if credential.IdentityToken != "" { // the password is a placeholder then
		credential.Username, credential.Password = "", ""
	}
	return credential, nil
}

// dockerHubLogin is the name that `docker login` writes for Docker Hub.
const dockerHubLogin = "https://index.docker.io/v1/"

// rank tells which of several names of one place counts, the lower one: it is that
// which `docker login` writes.
func (r registry) rank() int {
	written := r.host
	if r.path != "" {
		written += "/" + r.path
	}
	if r.host == dockerHub && r.path == "" {
		written = dockerHubLogin
	}
	if r.name == written {
		return 0
	}
	return 1
}

// splitName reads the name of an entry, as in "registry.example.org/team" or
// "https://index.docker.io/v1/".
func splitName(name string) (host, path string) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
	host, path, _ = strings.Cut(name, "/")
	path = strings.Trim(path, "/")
	if path == "v1" || path == "v2" { // of the API, as old tools write it
		path = ""
	}
	return canonical(host), path
}

// dockerHub is the host of Docker Hub's registry.
const dockerHub = "registry-1.docker.io"

// dockerHubNames are all names of Docker Hub, the registry's own first.
var dockerHubNames = []string{dockerHub, "docker.io", "index.docker.io"}

// canonical gives Docker Hub, which has several names, one of them.
func canonical(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	if slices.Contains(dockerHubNames, host) {
		return dockerHub
	}
	return host
}

// find returns the credential of the longest path that the wanted one is in. Entries
// for other places may be broken. An entry for a path doesn't count for a path that may lead out of
// it. An entry for the host does, unless a path is needed.
func (c dockerConfig) find(host, path string, needPath bool) (Credential, error) {
	host, path = canonical(host), strings.Trim(path, "/")
	straight := !egress.HasDotSegments(path)
	var found *registry
	for i := range c {
		entry := &c[i]
		within := entry.path == "" && !needPath ||
			entry.path != "" && straight && (path == entry.path || strings.HasPrefix(path, entry.path+"/"))
		if entry.host == host && within && (found == nil || len(entry.path) > len(found.path)) {
			found = entry
		}
	}
	if found == nil {
		return Credential{}, nil
	}
	return found.credential, found.broken
}
