// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"slices"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/policy"
)

// Verify checks the provenance file beside the archive.
func (r Release) Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) error {
	found, err := r.find(ctx, c)
	if err != nil {
		return err
	}
	archive, err := r.archiveIn(found)
	if err != nil {
		return err
	}
	name := archive.name + policy.ProvenanceSuffix
	at := slices.IndexFunc(found.assets, func(a asset) bool { return a.name == name })
	if at < 0 {
		return want.Unsigned("the release has no file "+failure.Quote(name), "package it with `helm package --sign`, and publish its .prov beside it")
	}
	file, err := r.read(ctx, c, found.assets[at], "the provenance file", policy.MaxProvenance)
	if err != nil {
		return err
	}
	return want.CheckProvenance(file, digest, c.Ref)
}
