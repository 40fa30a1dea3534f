// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"path"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/policy"
)

// Verify checks the provenance file beside the archive.
func (h Chart) Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) error {
	entry, err := h.find(ctx, c)
	if err != nil {
		return err
	}
	at, err := h.archiveURL(entry.URL)
	if err != nil {
		return err
	}
	at.Path += policy.ProvenanceSuffix
	at.RawPath = ""
	file, err := c.File(ctx, at, "", "the provenance file", policy.MaxProvenance)
	if err != nil {
		return err
	}
	if file == nil {
		return want.Unsigned("there is no "+failure.Quote(path.Base(at.Path))+" beside the archive", "package it with `helm package --sign`")
	}
	return want.CheckProvenance(file, digest, c.Ref)
}
