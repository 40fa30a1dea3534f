// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxPlaces are kept of one value: the smallest hashes, so that they tend to stay the same
// while others come and go.
const maxPlaces = 8

// places says where a value came out, as hashes of an object and one of its fields.
type places struct {
	// exact ones have the text before the value in its line, too.
	exact []string
	// rough ones have the first word of the line.
	rough []string
}

// token returns a short hash of the parts of a place.
func token(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

func firstPlaces(all []string) []string {
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(maxPlaces, len(all))]
}
