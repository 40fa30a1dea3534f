// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Allowance is what may be spent on artifacts that belong together: on the archives in a
// bundle, or on a chart with those beside it. All of them may cost as much as one.
type Allowance struct {
	check    inspection
	matching int64 // steps left; see [Allowance.Packaged]
}

// NewAllowance is that of one artifact, with nothing spent.
func NewAllowance(limits Limits) *Allowance {
	return &Allowance{
		check:    inspection{limits: limits, total: limits.TotalBytes, headers: limits.allHeaders(), entries: limits.Entries},
		matching: maxMatching,
	}
}

// Unpack returns the files of an archive in a bundle.
func (a *Allowance) Unpack(archive []byte) ([]File, error) {
	if limit := a.check.limits.ArchiveBytes; int64(len(archive)) > limit {
		return nil, failure.TooLarge("the archive", limit)
	}
	a.check.kind = KindBundle
	return a.check.archive(archive, 0)
}

// Check checks the files of a chart, and the archives among them.
func (a *Allowance) Check(files []File) error {
	if a.check.entries -= len(files); a.check.entries < 0 {
		return failure.New(failure.ArtifactTooLarge, "it has more than %d entries, with its dependencies; take out what isn't needed", a.check.limits.Entries)
	}
	for _, file := range files {
		if a.check.total -= int64(len(file.Data)); a.check.total < 0 {
			return failure.TooLarge("its expanded content, with its dependencies,", a.check.limits.TotalBytes)
		}
	}
	a.check.kind = KindChart
	return a.check.nested(files, 0)
}
