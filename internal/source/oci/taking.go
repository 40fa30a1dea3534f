// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// taking takes the versions of a list one by one, and room for it if it gets large.
type taking struct {
	ctx      context.Context
	versions []string
	bytes    int64
	reserved bool
}

// add a version.
func (t *taking) add(version string) error {
	if len(t.versions) == place.MaxVersions {
		return place.TooManyTags(place.MaxVersions)
	}
	t.bytes += int64(len(version)) + 16
	if t.bytes > room.Little && !t.reserved {
		if err := room.Reserve(t.ctx, place.MaxList); err != nil {
			return err
		}
		t.reserved = true
	}
	t.versions = append(t.versions, version)
	return nil
}
