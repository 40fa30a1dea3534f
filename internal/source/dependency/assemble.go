// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// DirectoryOf is where the dependency is put. Its name is seen by nobody: Helm goes by
// what Chart.yaml says. It has the version, as a chart may want two of one name.
func (w Want) DirectoryOf(version string) string {
	return chartsDirectory + w.Name + "-" + version + "/"
}

// Assembly identifies a chart with its dependencies: by the digest of each, and where it is.
func Assembly(digest string, parts []Part) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", digest)
	for _, part := range parts {
		fmt.Fprintf(hash, "%q %q\n", part.Directory, part.Digest)
	}
	return "assembled " + artifact.FormatDigest(hash.Sum(nil))
}

// Assemble puts the dependencies into the chart. The limits of a chart hold for all of
// it together, with what archives in it expand to.
func Assemble(files []artifact.File, parts []Part, limits artifact.Limits) ([]artifact.File, error) {
	all, err := assembled(files, parts, limits)
	if err != nil {
		return nil, err
	}
	return all, artifact.CheckWhole(all, limits)
}

// assembled puts the dependencies where they belong.
func assembled(files []artifact.File, parts []Part, limits artifact.Limits) ([]artifact.File, error) {
	all := slices.Clone(files)
	for _, part := range parts {
		for _, file := range all {
			if strings.HasPrefix(file.Name, part.Directory) || file.Name+"/" == part.Directory {
				return nil, failure.New(failure.ArtifactRefused, "it has %s already, with something else in it; take that away", failure.Quote(strings.TrimSuffix(part.Directory, "/")))
			}
		}
		for _, file := range part.Files {
			name := part.Directory + file.Name
			if err := artifact.CheckName(name, limits); err != nil {
				return nil, err
			}
			all = append(all, artifact.File{Name: name, Data: file.Data})
		}
		if len(all) > limits.Entries {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries, with its dependencies; take out what isn't needed", limits.Entries)
		}
	}
	slices.SortFunc(all, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
