// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

const (
	// MaxVersions is how many versions of one artifact are taken into account.
	MaxVersions = 100_000
	// MaxList is what a list of them takes at most.
	MaxList = 16 << 20 // bytes
)

// Taking takes the versions of a list one by one, and room for it if it gets large.
type Taking struct {
	Ctx      context.Context
	Versions []string
	bytes    int64
	reserved bool
}

// Add a version.
func (t *Taking) Add(version string) error {
	if len(t.Versions) == MaxVersions {
		return TooMany(MaxVersions)
	}
	t.bytes += int64(len(version)) + 16
	if t.bytes > room.Little && !t.reserved {
		if err := room.Reserve(t.Ctx, MaxList); err != nil {
			return err
		}
		t.reserved = true
	}
	t.Versions = append(t.Versions, version)
	return nil
}

// TooMany is the error of a list without end.
func TooMany(most int) *failure.Error {
	return failure.New(failure.ArtifactTooLarge, "it has more than %d tags; name an exact version", most)
}
