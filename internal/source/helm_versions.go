// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// versions lists those of the index, which is only read anew if it has changed.
func (c helmChart) versions(ctx context.Context, as *guest, notBefore time.Time) ([]string, error) {
	index, err := c.stock.indexSince(ctx, as, c.HelmSource, notBefore)
	if err != nil {
		return nil, err
	}
	entries := index.Versions(c.Chart)
	if len(entries) == 0 {
		return nil, notPublished("the repository has no chart %s; publish it, or correct helm.chart", failure.Quote(c.Chart))
	}
	var found []string
	for _, entry := range entries {
		if versions.IsExact(entry.Version) {
			found = append(found, entry.Version)
		}
	}
	return found, nil
}

// pin is the digest of the version's archive.
func (c helmChart) pin(ctx context.Context, as *guest) (string, error) { return c.resolve(ctx, as) }

var _ catalogue = helmChart{}
