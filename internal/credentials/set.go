// SPDX-License-Identifier: Apache-2.0

// Package credentials reads the credentials for registries and repositories. They are
// in a Secret that an object names, or in the instance's own directory, which is a
// Secret mounted into its pod. See docs/sources/README.md for the keys.
//
// A Secret that an object names is for the one host that the object names beside
// it. The instance's own credentials serve the objects of all its namespaces, whose
// authors may name any host: so each of them is bound to a host.
package credentials

import (
	"bytes"
	"crypto/sha256"
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
	KeyIdentity     = "identity"    // a private key, for SSH; KeyPassword may encrypt it
	KeyKnownHosts   = "known_hosts" // keys of hosts, for SSH
	// KeyPlainHTTP lets what is bound to a host go there without TLS. It comes after
	// the host's name only.
	KeyPlainHTTP = "plain-http"
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
	set := Set{data: data, bound: bound}
	for _, key := range []string{KeyDockerConfig, KeyConfig} {
		if len(data[key]) == 0 {
			continue
		}
		registries, err := parseDockerConfig(key, data[key])
		if err != nil {
			return Set{}, err
		}
		set.registries = append(set.registries, registries...)
	}
	return set, nil
}

// Host is where credentials are wanted for.
type Host struct {
	// Name with the port, as in "registry.example.org:5000".
	Name string
	// Path below it, which some registries have credentials for.
	Path string
	// PlainHTTP is set if it is asked without TLS.
	PlainHTTP bool
	// AnyPath is set if whoever names the host may ask for any path of it.
	AnyPath bool
}

// For returns the credential for a host. Errors are about the set's data for it, and quote nothing
// of the data.
//
// Whoever names a host in an object says if it is asked without TLS, too. Bound data is sent there
// only if its authors allow that. A host that may be asked for any path gets only two parts of
// bound data: the credentials of config.json that are for a path, and certificates to trust.
func (s Set) For(at Host) (Credential, error) {
	found, allowed := Credential{}, !at.PlainHTTP || !s.bound
	for _, prefix := range prefixes(at.Name) {
		found = found.OrElse(s.keyed(prefix))
		allowed = allowed || s.text(prefix+KeyPlainHTTP) == "true"
	}
	if !s.bound {
		found = found.OrElse(s.keyed(""))
	}
	if s.bound && at.AnyPath {
		found = Credential{CA: found.CA}
	}
	registries, err := s.registries.find(at.Name, at.Path, s.bound && at.AnyPath)
	if err != nil && allowed && found.isSilent() {
		return Credential{}, err
	}
	found = found.OrElse(registries)
	if s.bound {
		found = found.OrElse(Credential{CA: s.data[KeyCA], KnownHosts: s.data[KeyKnownHosts]})
	}
	if !allowed {
		return Credential{CA: found.CA}, nil
	}
	return found, nil
}

// prefixes returns those that keys for the host may have. A name with "_" has none, and neither has an IPv6 address without
// a port: they could be chosen to be that of another host with its port.
func prefixes(host string) []string {
	if strings.Contains(host, "_") || strings.HasSuffix(host, "]") {
		return nil
	}
	names := []string{host}
	if canonical(host) == dockerHub {
		names = append(names, dockerHubNames...)
	}
	for i, name := range names {
		names[i] = KeyOf(name) + "."
	}
	return names
}

// KeyOf returns a host as it is written in keys: these can't have a colon, which is
// "_" instead.
func KeyOf(host string) string {
	return strings.NewReplacer(":", "_", "[", "", "]", "").Replace(strings.ToLower(host))
}

// keyed reads the keys with a prefix.
func (s Set) keyed(prefix string) Credential {
	return Credential{
		Username: s.text(prefix + KeyUsername), Password: s.text(prefix + KeyPassword), Token: s.text(prefix + KeyToken),
		CA: s.data[prefix+KeyCA], Certificate: s.data[prefix+KeyCertificate], Key: s.data[prefix+KeyKey],
		Identity: s.data[prefix+KeyIdentity], KnownHosts: s.data[prefix+KeyKnownHosts],
	}
}

// text returns the text of a key. Files often end with a line break that isn't part of it.
func (s Set) text(key string) string { return string(bytes.TrimRight(s.data[key], "\r\n")) }

// Credential is what one host may be shown. Its zero value is none at all.
type Credential struct {
	// Username and Password for basic authentication, or for a token service.
	Username, Password string
	// IdentityToken is exchanged for an access token, as `docker login` keeps it.
	IdentityToken string
	// Token is sent as it is: Authorization: Bearer.
	Token string
	// CA are certificates in PEM that the host's may be signed by.
	CA []byte
	// Certificate and Key in PEM are the client's.
	Certificate, Key []byte
	// Identity is the client's private key for SSH, which Password may encrypt. KnownHosts are lines of the keys of hosts.
	Identity, KnownHosts []byte
}

// IsZero reports whether there is nothing to tell who asks. CA doesn't.
func (c Credential) IsZero() bool {
	return c.isSilent() && len(c.Certificate) == 0 && len(c.Identity) == 0
}

// isSilent reports whether there is nothing to send in a request.
func (c Credential) isSilent() bool {
	return c.Username == "" && c.Password == "" && c.IdentityToken == "" && c.Token == ""
}

// Fingerprint tells credentials apart. It is kept in memory only.
func (c Credential) Fingerprint() string {
	hash := sha256.New()
	for _, part := range []string{c.Username, c.Password, c.IdentityToken, c.Token, string(c.CA), string(c.Certificate), string(c.Key), string(c.Identity), string(c.KnownHosts)} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return string(hash.Sum(nil))
}

// String keeps the content out of logs and messages.
func (c Credential) String() string { return "[credential]" }

// GoString keeps the content out of %#v.
func (c Credential) GoString() string { return c.String() }

// OrElse takes from other what c lacks. Passwords and tokens go together.
func (c Credential) OrElse(other Credential) Credential {
	if c.isSilent() {
		c.Username, c.Password, c.IdentityToken, c.Token = other.Username, other.Password, other.IdentityToken, other.Token
	}
	if len(c.CA) == 0 {
		c.CA = other.CA
	}
	if len(c.Certificate) == 0 && len(c.Key) == 0 {
		c.Certificate, c.Key = other.Certificate, other.Key
	}
	if len(c.Identity) == 0 {
		c.Identity = other.Identity
	}
	if len(c.KnownHosts) == 0 {
		c.KnownHosts = other.KnownHosts
	}
	return c
}
