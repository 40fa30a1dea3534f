// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/url"
	"slices"
	"strings"
)

// HasDotSegments reports whether some server may take a part of the path for "." or "..",
// also where it is encoded: it leads elsewhere than it says.
func HasDotSegments(path string) bool {
	for range 3 { // encoded twice, too
		segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
		if slices.ContainsFunc(segments, func(segment string) bool {
			name, _, _ := strings.Cut(segment, ";") // of parameters
			return name == "." || name == ".."
		}) {
			return true
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return false
		}
		path = decoded
	}
	return false
}
