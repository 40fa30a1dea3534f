// SPDX-License-Identifier: Apache-2.0

// Package credentials reads the credentials for registries and repositories: from
// the data of a Secret that an object names, or from the instance's own directory,
// which is a Secret mounted into its pod. See docs/sources/README.md for the keys.
//
// A Secret that an object names is for the one host that the object names beside
// it. The instance's own credentials serve the objects of all its namespaces, whose
// authors may name any host: so each of them is bound to a host.
package credentials

import (
	"crypto/sha256"
	"fmt"
)

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
}

// IsZero tells whether there is nothing to tell who asks. CA doesn't.
func (c Credential) IsZero() bool { return c.isSilent() && len(c.Certificate) == 0 }

// isSilent tells whether there is nothing to send in a request.
func (c Credential) isSilent() bool {
	return c.Username == "" && c.Password == "" && c.IdentityToken == "" && c.Token == ""
}

// Fingerprint tells credentials apart. It is kept in memory only.
func (c Credential) Fingerprint() string {
	hash := sha256.New()
	for _, part := range []string{c.Username, c.Password, c.IdentityToken, c.Token, string(c.CA), string(c.Certificate), string(c.Key)} {
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
	return c
}
