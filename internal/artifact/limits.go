// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"io/fs"
	"regexp"
	"strings"
	"unicode"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// Limits bound what one chart may cost. A field that is zero takes its default.
//
// They are measured against real charts: Cilium 1.20 has 0.2 MiB compressed, 1.4 MiB
// expanded, 166 files, the largest 0.3 MiB; kube-prometheus-stack with its CRDs
// expands to about 6 MiB.
type Limits struct {
	// ArchiveBytes is the size of an archive as it is stored, compressed.
	// Defaults to 10 MiB, as in Flux's source-controller.
	ArchiveBytes int64
	// TotalBytes is the expanded size of an archive, up to the end of its last entry, with the
	// archives inside it. For a directory it is the sum of its files. Defaults to 32 MiB: several
	// times the largest charts, and a third of Helm's 100 MiB, since all of it is held in memory.
	TotalBytes int64
	// FileBytes is the expanded size of one file. Defaults to 5 MiB, from which
	// on Helm's loader refuses it, too.
	FileBytes int64
	// Entries is the number of entries, directories and those of archives inside
	// the archive included. Defaults to 10,000.
	Entries int
	// IndexBytes is the size of a Helm repository's index. Defaults to 32 MiB, twice
	// the largest known.
	IndexBytes int64
}

// Limits that aren't to be changed.
const (
	// Nesting is how deep archives may be inside each other (charts/*.tgz). 1 is common, 2 is rare.
	Nesting = 4
	// maxNameBytes and maxNameParts are of a name, with the top-level directory of an archive.
	maxNameBytes = 512
	maxNameParts = 32
)

// WithDefaults returns the limits with no field left zero.
func (l Limits) WithDefaults() Limits {
	return Limits{
		ArchiveBytes: cmp.Or(l.ArchiveBytes, 10<<20),
		TotalBytes:   cmp.Or(l.TotalBytes, 32<<20),
		FileBytes:    cmp.Or(l.FileBytes, 5<<20),
		Entries:      cmp.Or(l.Entries, 10_000),
		IndexBytes:   cmp.Or(l.IndexBytes, 32<<20),
	}
}

// driveLetter starts a part of a name that leads elsewhere on Windows.
var driveLetter = regexp.MustCompile(`(^|/)[A-Za-z]:`)

// CheckName refuses a name that isn't plainly relative, slash-separated and
// printable. Names become keys and messages, never paths of a file system; they
// are held to this all the same, since a tool that uses the result may do so.
func CheckName(name string) error {
	hidden := func(r rune) bool { return r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) } // as what turns text around
	switch {
	case len(name) > maxNameBytes, strings.Count(name, "/") >= maxNameParts:
		return failure.New(failure.ArtifactRefused, "entry %s has a name of more than %d bytes or %d parts; rename it", failure.Quote(name), maxNameBytes, maxNameParts)
	case !fs.ValidPath(name), name == ".", strings.ContainsFunc(name, hidden), driveLetter.MatchString(name):
		return failure.New(failure.ArtifactRefused, "entry %s has a name that leaves the artifact, or isn't a plain one: parts have to be printable, and separated by slashes; rename it", failure.Quote(name))
	}
	return nil
}
