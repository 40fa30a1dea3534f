// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"io/fs"
	"path"
	"slices"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// MaxIgnoreFile is a hundred times the .helmignore that `helm create` writes.
const MaxIgnoreFile = 64 << 10 // bytes

// IgnoreRules returns the rules in a .helmignore, which may be empty, and Helm's own.
func IgnoreRules(file []byte) (*ignore.Rules, error) {
	if len(file) > MaxIgnoreFile {
		return nil, failure.TooLarge(failure.Quote(ignore.HelmIgnore), MaxIgnoreFile)
	}
	rules, err := ignore.Parse(bytes.NewReader(file))
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "its .helmignore: %w; correct it", err)
	}
	rules.AddDefaults()
	return rules, nil
}

// Packaged returns the files of a chart's directory that Helm would package: those
// that .helmignore doesn't name.
func Packaged(files []File) ([]File, error) {
	var written []byte
	if file := Find(files, ignore.HelmIgnore); file != nil {
		written = file.Data
	}
	rules, err := IgnoreRules(written)
	if err != nil {
		return nil, err
	}
	packaged := slices.DeleteFunc(slices.Clone(files), func(file File) bool {
		for parent := path.Dir(file.Name); parent != "."; parent = path.Dir(parent) {
			if rules.Ignore(parent, entry{directory: true}) {
				return true
			}
		}
		return rules.Ignore(file.Name, entry{})
	})
	if Find(packaged, ChartFile) == nil {
		return nil, failure.New(failure.ArtifactInvalid, "the directory has no Chart.yaml; name a chart's directory, or a chart archive")
	}
	return packaged, nil
}

// entry is a file or directory of an archive, as the rules of .helmignore look at it.
type entry struct {
	fs.FileInfo // nobody asks for more
	directory   bool
}

// IsDir implements fs.FileInfo.
func (e entry) IsDir() bool { return e.directory }
