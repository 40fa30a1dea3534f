// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// MaxIgnoreFile is a hundred times the .helmignore that `helm create` writes.
	MaxIgnoreFile = 64 << 10 // bytes
	// maxMatching is how many characters names and patterns may be compared in. The
	// .helmignore of `helm create` and 10,000 files take an eighth of it.
	maxMatching = 128 << 20
)

// Packaged returns the files of a chart's directory that Helm would package: those
// that .helmignore doesn't name.
func (a *Allowance) Packaged(files []File) ([]File, error) {
	to := matcher{rules: ignore.Empty(), left: &a.matching, directories: map[string]bool{}}
	for _, file := range files {
		if file.Name != ignore.HelmIgnore {
			continue
		}
		if len(file.Data) > MaxIgnoreFile {
			return nil, failure.TooLarge("its .helmignore", MaxIgnoreFile)
		}
		var err error
		if to.rules, err = ignore.Parse(bytes.NewReader(file.Data)); err != nil {
			return nil, failure.New(failure.ArtifactInvalid, "its .helmignore: %w; correct it", err)
		}
		to.weigh(string(file.Data))
	}
	to.rules.AddDefaults()
	kept := make([]File, 0, len(files))
	for _, file := range files {
		if !to.ignored(file.Name, false) {
			kept = append(kept, file)
		}
		if *to.left < 0 {
			return nil, failure.New(failure.ArtifactTooLarge, "its .helmignore takes too long to compare with the names of so many files; shorten it, or put the chart there as an archive (`helm package`)")
		}
	}
	return kept, nil
}

// matcher compares names with the rules of .helmignore, each directory once.
type matcher struct {
	rules       *ignore.Rules
	directories map[string]bool // whether they are ignored
	left        *int64          // steps; what is negative ends it
	// each name takes that many steps, and so many for each of its bytes
	each, eachByte int64
}

// weigh counts what the patterns cost: one with a star is compared at each place in a name.
func (m *matcher) weigh(patterns string) {
	const call = 16
	for pattern := range strings.Lines(patterns) {
		pattern = strings.TrimSpace(pattern)
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		m.each += int64(call + len(pattern))
		if strings.Contains(pattern, "*") {
			m.eachByte += int64(len(pattern))
		}
	}
}

// ignored tells whether the rules name the file, or a directory that it is in.
func (m *matcher) ignored(name string, directory bool) bool {
	if i := strings.LastIndexByte(name, '/'); i >= 0 && m.directory(name[:i]) {
		return true
	}
	if *m.left -= m.each + m.eachByte*int64(len(name)); *m.left < 0 {
		return false
	}
	return m.rules.Ignore(name, ignorable{name: name, directory: directory})
}

func (m *matcher) directory(name string) bool {
	ignored, known := m.directories[name]
	if !known {
		ignored = m.ignored(name, true)
		m.directories[name] = ignored
	}
	return ignored
}

// ignorable is a file or directory of an archive, as the rules of .helmignore look at it.
type ignorable struct {
	name      string
	directory bool
}

func (e ignorable) Name() string       { return path.Base(e.name) }
func (e ignorable) Size() int64        { return 0 }
func (e ignorable) ModTime() time.Time { return time.Time{} }
func (e ignorable) IsDir() bool        { return e.directory }
func (e ignorable) Sys() any           { return nil }

func (e ignorable) Mode() fs.FileMode {
	if e.directory {
		return fs.ModeDir
	}
	return 0
}
