// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"net/http"
	"path"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/policy"
)

// Verify checks the provenance file beside the archive.
func (c Chart) Verify(ctx context.Context, as *guest.Guest, digest string, want policy.Policy) error {
	entry, err := c.find(ctx, as)
	if err != nil {
		return err
	}
	at, err := c.archiveURL(entry.URL)
	if err != nil {
		return err
	}
	at.Path += policy.ProvenanceSuffix
	at.RawPath = ""
	file, err := as.File(ctx, at, http.Header{}, "the provenance file", policy.MaxProvenance)
	if err != nil {
		return err
	}
	if file == nil {
		return want.Unsigned("there is no "+failure.Quote(path.Base(at.Path))+" beside the archive", "package it with `helm package --sign`")
	}
	return want.CheckFile(file.Data, file.Host, digest, as.Ref)
}
