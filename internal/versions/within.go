// SPDX-License-Identifier: Apache-2.0

package versions

import "strings"

// Within is a line whose versions are a part of longer ones, as tags in "tags/v1.0.0@sha1:<hex>". A tag has one commit, with which it
// was found. It is a [Line].
type Within struct {
	Line
	// Before and After are the texts around the part; other text may follow.
	Before, After string
}

// part returns the part of a version that the line is of.
func (w Within) part(version string) (string, bool) {
	part, _, _ := strings.Cut(version, w.After)
	return strings.CutPrefix(part, w.Before)
}

// Allows implements [Line].
func (w Within) Allows(version string) bool {
	part, ok := w.part(version)
	return ok && w.Line.Allows(part)
}

// Newer implements [Line].
func (w Within) Newer(one, than string) bool {
	part, _ := w.part(one)
	other, _ := w.part(than)
	return w.Allows(one) && (!w.Allows(than) || w.Line.Newer(part, other))
}

// Newest implements [Line].
func (w Within) Newest(published []string) (string, error) {
	var parts []string
	versions := map[string]string{}
	for _, version := range published {
		if part, ok := w.part(version); ok {
			parts = append(parts, part)
			versions[part] = version
		}
	}
	newest, err := w.Line.Newest(parts)
	return versions[newest], err
}
