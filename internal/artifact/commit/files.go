// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"bytes"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/text/unicode/norm"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Unfit is an entry of a commit that no artifact may have. Content without it may be used.
type Unfit struct{ Name, Why string }

// Modes of entries, as Git writes them.
const (
	modeTree       = "40000"
	modeFile       = "100644"
	modeGroup      = "100664" // of old versions of Git
	modeExecutable = "100755"
)

// walk goes through the trees of a commit.
type walk struct {
	objects map[plumbing.Hash]object
	limits  artifact.Limits
	entries int   // left to read
	left    int64 // bytes of files, of which many may be one object
	files   []artifact.File
	unfit   []Unfit
}

// MaxText of a commit that is signed.
const MaxText = 64 << 10 // bytes

// Read is a commit as a pack has it.
type Read struct {
	// Text is the commit itself, which a signature is of: its tree, authors and message. It is nil if it is larger than MaxText.
	Text []byte
	// Files are sorted by name.
	Files []artifact.File
	// Unfit are entries that can't be used.
	Unfit []Unfit
}

// Open returns what a pack has of a commit.
func Open(pack []byte, commit string, limits artifact.Limits) (Read, error) {
	objects, err := unpack(pack, limits)
	if err != nil {
		return Read{}, err
	}
	is := objects[plumbing.NewHash(commit)]
	tree, named := bytes.CutPrefix(is.data, []byte("tree "))
	if is.kind != plumbing.CommitObject || !named || len(tree) < 40 {
		return Read{}, broken()
	}
	w := &walk{objects: objects, limits: limits, entries: limits.Entries, left: limits.TotalBytes, files: []artifact.File{}}
	if err := w.tree(plumbing.NewHash(string(tree[:40])), ""); err != nil {
		return Read{}, err
	}
	artifact.SortFiles(w.files)
	read := Read{Files: w.files, Unfit: w.unfit}
	if len(is.data) <= MaxText {
		read.Text = is.data
	}
	return read, nil
}

// tree reads a directory, and those below it.
func (w *walk) tree(hash plumbing.Hash, within string) error {
	is, known := w.objects[hash]
	if !known || is.kind != plumbing.TreeObject {
		return broken()
	}
	names := map[string]bool{}
	for left := is.data; len(left) > 0; {
		mode, rest, ok := bytes.Cut(left, []byte{' '})
		part, rest, also := bytes.Cut(rest, []byte{0})
		if !ok || !also || len(rest) < len(hash) {
			return broken()
		}
		left = rest[len(hash):]
		if w.entries--; w.entries < 0 {
			return failure.TooMany("entries of the commit", w.limits.Entries)
		}
		if names[string(part)] {
			return failure.New(failure.ArtifactRefused, "entry %s is there twice; take one of both out", failure.Quote(within+string(part)))
		}
		names[string(part)] = true
		if err := w.entry(string(mode), within, string(part), plumbing.Hash(rest[:len(hash)])); err != nil {
			return err
		}
	}
	return nil
}

// entry reads one entry of a directory.
func (w *walk) entry(mode, within, part string, hash plumbing.Hash) error {
	name := within + part
	why := unfit(name, part)
	if why == "" && mode == modeTree {
		return w.tree(hash, name+"/")
	}
	is := w.objects[hash]
	switch {
	case why != "":
	case mode != modeFile && mode != modeExecutable && mode != modeGroup:
		why = "it is a link, or a submodule; put the files themselves there"
	case is.kind != plumbing.BlobObject:
		return broken()
	case int64(len(is.data)) > w.limits.FileBytes:
		why = failure.TooLarge("it", w.limits.FileBytes).Error()
	case bytes.HasPrefix(is.data, []byte("version https://git-lfs.github.com/spec/")):
		why = "it is a pointer of Git LFS, which isn't followed; put the file itself there"
	}
	if why != "" {
		w.unfit = append(w.unfit, Unfit{name, why})
		return nil
	}
	if w.left -= int64(len(is.data)); w.left < 0 {
		return failure.TooLarge("the expanded content of the commit", w.limits.TotalBytes)
	}
	w.files = append(w.files, artifact.File{Name: name, Data: artifact.TrimBOM(is.data)})
	return nil
}

// unfit says why an entry can't have this name, "" if it can. Some file systems take other names for .git, or for one another.
func unfit(name, part string) string {
	if err := artifact.CheckName(name); err != nil {
		return "its name leaves the artifact, isn't a plain one, or is too long; rename it"
	}
	bare := strings.ToLower(strings.TrimRight(part, ". "))
	switch {
	case strings.Contains(part, "/"), part == "":
		return "its name isn't a plain one; rename it"
	case bare == ".git", bare == "git~1":
		return "its name is that of Git's own directory; rename it"
	case !norm.NFC.IsNormalString(part):
		return "its name isn't in Unicode's normal form C; rename it"
	}
	return ""
}
