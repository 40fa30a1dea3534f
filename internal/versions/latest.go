// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"fmt"
	"slices"
	"strings"
)

// Latest is the line of what has one version at a time, and no order: a branch, whose commits are each newer than any other, a tag, or
// an artifact of Flux. The version that is published is taken. It is a [Line].
type Latest struct {
	// What has the version, for people.
	What string
	// Prefix of its versions.
	Prefix string
	// Fixed says that another version isn't taken, once one is.
	Fixed bool
}

// String implements [Line].
func (l Latest) String() string { return l.What }

// Allows implements [Line].
func (l Latest) Allows(version string) bool {
	return version != "" && strings.HasPrefix(version, l.Prefix)
}

// Newer implements [Line].
func (l Latest) Newer(one, than string) bool {
	return l.Allows(one) && (!l.Allows(than) || !l.Fixed && one != than)
}

// Newest implements [Line].
func (l Latest) Newest(published []string) (string, error) {
	at := slices.IndexFunc(published, l.Allows)
	if at < 0 {
		return "", fmt.Errorf("the source has no %s; push it, or correct its name", l.What)
	}
	return published[at], nil
}
