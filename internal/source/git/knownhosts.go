// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // known_hosts has names in this form
	"encoding/base64"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// hostKeys are the keys that a host may have.
type hostKeys struct {
	host string
	keys []ssh.PublicKey
}

// knownHosts returns the keys of a host in a file known_hosts, with names that are plain or hashed. Lines of authorities, and
// patterns, name no host.
func knownHosts(file []byte, hostPort string) (hostKeys, error) {
	known := hostKeys{host: hostPort}
	name := knownhosts.Normalize(hostPort)
	var revoked []ssh.PublicKey
	for line := range bytes.Lines(file) {
		marker, hosts, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil || !slices.ContainsFunc(hosts, func(written string) bool { return written == name || isHashOf(written, name) }) {
			continue // an empty line or a comment is an error, too
		}
		switch marker {
		case "":
			known.keys = append(known.keys, key)
		case "revoked":
			revoked = append(revoked, key)
		}
	}
	known.keys = slices.DeleteFunc(known.keys, func(key ssh.PublicKey) bool {
		return slices.ContainsFunc(revoked, func(other ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), other.Marshal()) })
	})
	if len(known.keys) == 0 {
		return known, failure.New(failure.SourceUntrusted, "the credentials have no key of host %s in known_hosts; add what `ssh-keyscan` prints, compared with what the host's owner publishes", name)
	}
	return known, nil
}

// isHashOf reports whether a name is written as |1|salt|hash.
func isHashOf(written, name string) bool {
	salt, hash, _ := strings.Cut(strings.TrimPrefix(written, "|1|"), "|")
	key, err := base64.StdEncoding.DecodeString(salt)
	if err != nil || !strings.HasPrefix(written, "|1|") {
		return false
	}
	sum := hmac.New(sha1.New, key)
	sum.Write([]byte(name))
	return base64.StdEncoding.EncodeToString(sum.Sum(nil)) == hash
}

// check implements [ssh.HostKeyCallback].
func (k hostKeys) check(_ string, _ net.Addr, is ssh.PublicKey) error {
	if slices.ContainsFunc(k.keys, func(known ssh.PublicKey) bool { return bytes.Equal(known.Marshal(), is.Marshal()) }) {
		return nil
	}
	return untrusted(k.host)
}

// algorithms returns those of the known keys, so that the host shows one of them.
func (k hostKeys) algorithms() (all []string) {
	for _, key := range k.keys {
		if key.Type() == ssh.KeyAlgoRSA {
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		all = append(all, key.Type())
	}
	return all
}

func untrusted(host string) error {
	return failure.New(failure.SourceUntrusted, "%s shows another key than known_hosts of the credentials has; find out why, and correct known_hosts", host)
}
