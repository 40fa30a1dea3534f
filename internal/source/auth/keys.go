// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"strings"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// ownKeys are those of the instance's own Secret that count for the reference's host.
func ownKeys(r reference.Reference) string {
	host := r.RepositoryHost()
	key := credentials.KeyOf(host)
	keys := "config.json, or " + key + ".username and " + key + ".password"
	switch {
	case strings.Contains(host, "_") && r.Chart.HTTP == nil: // its keys could be those of another host
		return "config.json"
	case r.Chart.GitHub != nil:
		keys = key + ".token"
	case r.Chart.HTTP != nil:
		keys = "config.json, for " + host + " with a path"
	}
	return keys
}

// plainKey is the key without which credentials that are bound to the reference's host
// don't go there, for the end of a sentence about others; "" if none is needed.
func plainKey(r reference.Reference) string {
	if r.Base().Scheme != "http" {
		return ""
	}
	return "; without TLS they are sent only if " + credentials.KeyOf(r.RepositoryHost()) + "." + credentials.KeyPlainHTTP + ` is "true" there`
}
