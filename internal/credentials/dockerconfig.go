// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// dockerConfig are the credentials of a config.json. Programs that it names
// (credsStore, credHelpers) are never started.
type dockerConfig []registry

// registry is one entry: for a host, or for a path below it.
type registry struct {
	host, path string
	credential Credential
}

func parseDockerConfig(data []byte) (dockerConfig, error) {
	var config struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, errors.New("is no JSON as `docker login` writes it") // the parser's error may quote it
	}
	var all dockerConfig
	for name, entry := range config.Auths {
		credential := Credential{
			Username: entry.Username, Password: entry.Password,
			IdentityToken: entry.IdentityToken, Token: entry.RegistryToken,
		}
		if entry.Auth != "" {
			decoded, err := base64.StdEncoding.DecodeString(entry.Auth)
			username, password, found := strings.Cut(string(decoded), ":")
			if err != nil || !found {
				return nil, errors.New("has an auths[].auth that isn't base64 of username:password")
			}
			credential.Username, credential.Password = username, strings.TrimRight(password, "\x00")
		}
		if credential.IdentityToken != "" { // the password is a placeholder then
			credential.Username, credential.Password = "", ""
		}
		host, path := splitName(name)
		all = append(all, registry{host, path, credential})
	}
	return all, nil
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

// canonical gives Docker Hub, which has several names, one of them.
func canonical(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	switch host {
	case "docker.io", "index.docker.io":
		return "registry-1.docker.io"
	}
	return host
}

// find returns the credential of the longest path that the wanted one is in.
func (c dockerConfig) find(host, path string) Credential {
	host, path = canonical(host), strings.Trim(path, "/")
	var found *registry
	for i := range c {
		entry := &c[i]
		within := entry.path == "" || path == entry.path || strings.HasPrefix(path, entry.path+"/")
		if entry.host == host && within && (found == nil || len(entry.path) > len(found.path)) {
			found = entry
		}
	}
	if found == nil {
		return Credential{}
	}
	return found.credential
}
