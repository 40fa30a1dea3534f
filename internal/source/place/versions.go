// SPDX-License-Identifier: Apache-2.0

package place

import "github.com/cluster-chandler/chandler/internal/artifact/failure"

const (
	// MaxVersions is how many versions of one artifact are taken into account.
	MaxVersions = 100_000
	// MaxList is what a list of them takes at most.
	MaxList = 16 << 20 // bytes
)

// TooManyTags is the error of a list without end.
func TooManyTags(most int) *failure.Error {
	return failure.New(failure.ArtifactTooLarge, "it has more than %d tags; name an exact version", most)
}
