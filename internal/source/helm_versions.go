// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// versions lists those of the index, which is only read anew if it has changed.
func (c helmChart) versions(ctx context.Context, as *guest, notBefore time.Time) ([]string, time.Time, error) {
	index, err := c.stock.indexSince(ctx, as, c.HelmSource, notBefore)
	if err != nil {
		return nil, time.Time{}, err
	}
	entries := index.Versions(c.Chart)
	if len(entries) == 0 {
		return nil, time.Time{}, notPublished("the repository has no chart %s; publish it, or correct helm.chart", failure.Quote(c.Chart))
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

// pin is the digest of the version's archive.
func (c helmChart) pin(ctx context.Context, as *guest) (string, error) { return c.resolve(ctx, as) }

var _ catalogue = helmChart{}
