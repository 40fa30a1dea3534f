// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"fmt"
	"strings"
)

// Commits is the line of commits that a name in a Git repository has, or the tags in a range. Its versions are a name with a
// commit, as in "heads/main@sha1:<hex>". Commits of a branch have no order that a repository tells: each is newer than any
// other, and the one that is published is taken. A tag has one commit, that with which it was found. It is a [Line].
type Commits struct {
	prefix, name, separator string
	moves                   bool
	tags                    Line // of the range, nil for one name
}

// CommitsOf returns the commits that a name has, which is the prefix with the name. The separator comes before the commit.
func CommitsOf(prefix, name, separator string, moves bool) Line {
	return Commits{prefix: prefix, name: name, separator: separator, moves: moves}
}

// CommitsIn returns the commits that tags in a range have.
func CommitsIn(prefix, text, separator string) (Line, error) {
	tags, err := ParseRange(text)
	if err != nil {
		return nil, err
	}
	return Commits{prefix: prefix, name: text, separator: separator, tags: tags}, nil
}

// String returns the name, or the range of tags.
func (c Commits) String() string {
	if c.tags != nil {
		return c.tags.String() + " of tags"
	}
	return c.prefix + c.name
}

// nameOf returns the name that a version has the commit of, without the prefix.
func (c Commits) nameOf(version string) (string, bool) {
	name, _, _ := strings.Cut(version, c.separator)
	return strings.CutPrefix(name, c.prefix)
}

// Allows implements [Line].
func (c Commits) Allows(version string) bool {
	name, ok := c.nameOf(version)
	if c.tags != nil {
		return ok && c.tags.Allows(name)
	}
	return ok && name == c.name
}

// Newer implements [Line].
func (c Commits) Newer(one, than string) bool {
	switch {
	case !c.Allows(one):
		return false
	case c.tags != nil && c.Allows(than):
		name, _ := c.nameOf(one)
		other, _ := c.nameOf(than)
		return c.tags.Newer(name, other)
	}
	return !c.Allows(than) || c.moves && one != than
}

// Newest implements [Line].
func (c Commits) Newest(published []string) (string, error) {
	var names []string
	versions := map[string]string{}
	for _, version := range published {
		if name, ok := c.nameOf(version); ok {
			names = append(names, name)
			versions[name] = version
		}
	}
	if c.tags != nil {
		newest, err := c.tags.Newest(names)
		return versions[newest], err
	}
	if versions[c.name] == "" {
		return "", fmt.Errorf("the repository has no %s; push it, or correct its name", c)
	}
	return versions[c.name], nil
}
