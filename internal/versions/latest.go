// SPDX-License-Identifier: Apache-2.0

package versions

import "errors"

// Latest is the line of a source that has one version at a time, and says of none which is newer. It is a [Line]; the text
// says of what.
type Latest string

// String implements [Line].
func (l Latest) String() string { return string(l) }

// Allows implements [Line].
func (Latest) Allows(version string) bool { return version != "" }

// Newer implements [Line]. Each version is newer than any other, as the one that is published is taken.
func (Latest) Newer(one, than string) bool { return one != "" && one != than }

// Newest implements [Line].
func (l Latest) Newest(published []string) (string, error) {
	if len(published) == 0 {
		return "", errors.New(string(l) + " isn't there")
	}
	return published[0], nil
}
