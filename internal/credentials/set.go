// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Keys of a Secret, and names of files in the instance's directory.
const (
	KeyDockerConfig = ".dockerconfigjson" // as in Secrets of type kubernetes.io/dockerconfigjson
	KeyConfig       = "config.json"       // the same, as `docker login` writes it
	KeyUsername     = "username"
	KeyPassword     = "password"
	KeyToken        = "token"
	KeyCA           = "ca.crt"
	KeyCertificate  = "tls.crt"
	KeyKey          = "tls.key"
)

// maxTotal is more than a Secret holds.
const maxTotal = 2 << 20 // bytes

// Set are the credentials in a Secret, or in the instance's directory.
type Set struct {
	data       map[string][]byte
	registries dockerConfig
	// bound: a key counts for a host only if it starts with the host's name.
	bound bool
}

// FromSecret reads the data of a Secret that an object names. Errors name the
// key, and quote nothing of its content.
func FromSecret(data map[string][]byte) (Set, error) { return newSet(data, false) }

func newSet(data map[string][]byte, bound bool) (Set, error) {
	total := 0
	for _, value := range data {
		total += len(value)
	}
	if total > maxTotal {
		return Set{}, errors.New("they are larger than a Secret can be")
	}
	set := Set{data: data, bound: bound}
	for _, key := range []string{KeyDockerConfig, KeyConfig} {
		if len(data[key]) == 0 {
			continue
		}
		registries, err := parseDockerConfig(data[key])
		if err != nil {
			return Set{}, fmt.Errorf("key %s %w", key, err)
		}
		set.registries = append(set.registries, registries...)
	}
	return set, nil
}

// For returns the credential for a host, as in "registry.example.org:5000", and
// the path below it, which some registries have credentials for.
func (s Set) For(host, path string) Credential {
	host = strings.ToLower(host)
	found := s.keyed(KeyOf(host) + ".")
	if s.bound {
		found = found.OrElse(Credential{CA: s.data[KeyCA]})
	} else {
		found = found.OrElse(s.keyed(""))
	}
	return found.OrElse(s.registries.find(host, path))
}

// Bound is the set as the instance's own credentials are: a key counts for a host only
// if it starts with the host's name, but for ca.crt.
func (s Set) Bound() Set {
	s.bound = true
	return s
}

// KeyOf is a host as it is written in keys: these can't have a colon, which is
// "_" instead.
func KeyOf(host string) string {
	return strings.NewReplacer(":", "_", "[", "", "]", "").Replace(strings.ToLower(host))
}

// keyed reads the keys with a prefix.
func (s Set) keyed(prefix string) Credential {
	// Files often end with a line break that isn't part of the secret.
	text := func(key string) string { return string(bytes.TrimRight(s.data[prefix+key], "\r\n")) }
	return Credential{
		Username: text(KeyUsername), Password: text(KeyPassword), Token: text(KeyToken),
		CA: s.data[prefix+KeyCA], Certificate: s.data[prefix+KeyCertificate], Key: s.data[prefix+KeyKey],
	}
}
