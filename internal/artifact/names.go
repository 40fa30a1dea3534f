// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// layout checks the names in one archive as they come, and all together at the end.
type layout struct {
	kind   Kind
	limits Limits
	top    string
	names  map[string]bool // below the top-level directory; true for a directory
}

// add checks an entry's name. It returns the name relative to the top-level
// directory, "" for that directory itself.
func (l *layout) add(header *tar.Header) (name string, err error) {
	directory := header.Typeflag == tar.TypeDir
	full := header.Name
	if directory {
		full = strings.TrimSuffix(full, "/")
	}
	if l.kind.Verbatim() {
		if full = plainName(full); full == "" && directory {
			return "", nil
		}
	}
	if err := CheckName(full, l.limits); err != nil {
		return "", err
	}
	if l.kind.Verbatim() {
		return full, l.note(full, full, directory)
	}
	top, name, below := strings.Cut(full, "/")
	if !below && !directory {
		return "", failure.New(failure.ArtifactRefused, "entry %s is outside of a top-level directory; make the archive with `helm package`", failure.Quote(full))
	}
	if l.top == "" {
		l.top = top
	}
	if top != l.top {
		return "", failure.New(failure.ArtifactRefused, "entry %s is outside of %s, the top-level directory; make the archive with `helm package`", failure.Quote(full), failure.Quote(l.top))
	}
	return name, l.note(name, full, directory)
}

// note remembers an entry's name, which no other entry may have.
func (l *layout) note(name, full string, directory bool) error {
	if _, known := l.names[name]; known {
		return failure.New(failure.ArtifactRefused, "entry %s is there twice; take one of both out", failure.Quote(full))
	}
	l.names[name] = directory
	return nil
}

// finish checks that the names make up a tree, and a chart if it has to be one.
func (l *layout) finish() error {
	both := ""
	for name := range l.names {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if directory, known := l.names[parent]; known && !directory && (both == "" || parent < both) {
				both = parent
			}
		}
	}
	if both != "" {
		return failure.New(failure.ArtifactRefused, "entry %s is both a file and a directory; take one of both out", failure.Quote(path.Join(l.top, both)))
	}
	if l.kind.Verbatim() {
		return nil
	}
	if directory, known := l.names[ChartFile]; !known || directory {
		return failure.New(failure.ArtifactInvalid, "there is no Chart.yaml in its top-level directory; make the archive with `helm package`")
	}
	return nil
}

// CheckName refuses a name that isn't plainly relative, slash-separated and
// printable. Names become keys and messages, never paths of a file system; they
// are held to this all the same, since a tool that uses the result may do so.
func CheckName(name string, limits Limits) error {
	refuse := func(why string) error {
		return failure.New(failure.ArtifactRefused, "entry %s has a name %s; rename it", failure.Quote(name), why)
	}
	if len(name) > limits.NameBytes {
		return refuse("of more than " + strconv.Itoa(limits.NameBytes) + " bytes")
	}
	if !utf8.ValidString(name) {
		return refuse("that isn't UTF-8")
	}
	if strings.ContainsFunc(name, unprintable) {
		return refuse("with control characters")
	}
	if strings.Contains(name, `\`) {
		return refuse("with backslashes")
	}
	parts := strings.Split(name, "/")
	if len(parts) > limits.PathDepth {
		return refuse("of more than " + strconv.Itoa(limits.PathDepth) + " parts")
	}
	if parts[0] == "" {
		return refuse("that is absolute or empty")
	}
	for _, part := range parts {
		switch {
		case part == "..":
			return refuse("that leaves the chart")
		case part == "" || part == ".":
			return refuse("with empty or \".\" parts")
		case len(part) > 1 && part[1] == ':' && isLetter(part[0]):
			return refuse("with a drive letter")
		}
	}
	return nil
}

// unprintable covers NUL, and format characters such as those that turn text around.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
