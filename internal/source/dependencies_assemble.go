// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// directoryOf is where the dependency is put. Its name is seen by nobody: Helm goes by
// what Chart.yaml says. It has the version, as a chart may want two of one name.
func (w want) directoryOf(version string) string {
	return chartsDirectory + w.name + "-" + version + "/"
}

// assembly identifies a chart with its dependencies: by the digest of each, and where it is.
func assembly(digest string, parts []part) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", digest)
	for _, part := range parts {
		fmt.Fprintf(hash, "%q %q\n", part.directory, part.Digest)
	}
	return "assembled " + artifact.FormatDigest(hash.Sum(nil))
}

// assemble puts the dependencies into the chart. The limits of a chart hold for all of
// it together, with what archives in it expand to.
func assemble(files []render.File, parts []part, limits artifact.Limits) ([]render.File, error) {
	all := slices.Clone(files)
	for _, part := range parts {
		for _, file := range all {
			if strings.HasPrefix(file.Name, part.directory) || file.Name+"/" == part.directory {
				return nil, failure.New(failure.ArtifactRefused, "it has %s already, with something else in it; take that away", failure.Quote(strings.TrimSuffix(part.directory, "/")))
			}
		}
		for _, file := range part.Files {
			name := part.directory + file.Name
			if err := artifact.CheckName(name, limits); err != nil {
				return nil, err
			}
			all = append(all, render.File{Name: name, Data: file.Data})
		}
		if len(all) > limits.Entries {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries, with its dependencies", limits.Entries)
		}
	}
	slices.SortFunc(all, func(a, b render.File) int { return strings.Compare(a.Name, b.Name) })
	return all, artifact.CheckWhole(all, limits)
}
