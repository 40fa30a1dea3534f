// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"io/fs"
	"path"
	"time"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// Packaged returns the files of a chart's directory that Helm would package: those
// that .helmignore doesn't name.
func Packaged(files []render.File) ([]render.File, error) {
	rules := ignore.Empty()
	for _, file := range files {
		if file.Name != ignore.HelmIgnore {
			continue
		}
		var err error
		if rules, err = ignore.Parse(bytes.NewReader(file.Data)); err != nil {
			return nil, failure.New(failure.ArtifactInvalid, "its .helmignore: %w", err)
		}
	}
	rules.AddDefaults()
	kept := make([]render.File, 0, len(files))
	for _, file := range files {
		if !ignored(rules, file.Name) {
			kept = append(kept, file)
		}
	}
	return kept, nil
}

// ignored tells whether the rules name the file, or a directory that it is in.
func ignored(rules *ignore.Rules, name string) bool {
	for i, c := range name {
		if c == '/' && rules.Ignore(name[:i], ignorable{name: name[:i], directory: true}) {
			return true
		}
	}
	return rules.Ignore(name, ignorable{name: name})
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
