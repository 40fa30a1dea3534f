// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Versions lists those of the index, which is only read anew if it has changed.
func (c Chart) Versions(ctx context.Context, as *guest.Guest, notBefore time.Time) ([]string, time.Time, error) {
	index, err := c.indexes.indexSince(ctx, as, c.HelmSource, notBefore)
	if err != nil {
		return nil, time.Time{}, err
	}
	entries := index.Versions(c.Chart)
	if len(entries) == 0 {
		return nil, time.Time{}, failure.NotPublished("the repository has no chart %s; publish it, or correct helm.chart", failure.Quote(c.Chart))
	}
	// It takes no room: there was some for the index, and nothing is waited for while it is at hand.
	var found []string
	for _, entry := range entries {
		if len(entry.Version) <= versions.MaxLength && versions.IsExact(entry.Version) {
			found = append(found, entry.Version)
		}
	}
	return found, index.asked, nil
}

// Pin is the digest of the version's archive.
func (c Chart) Pin(ctx context.Context, as *guest.Guest) (string, error) {
	return c.Resolve(ctx, as)
}

var _ place.Catalogue = Chart{}
