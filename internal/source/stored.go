// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// downloaded counts what a source gave, and keeps it on disk: an archive, or each of a
// bundle's files under its own digest, and then the manifest that lists them.
func (s *Sources) downloaded(ctx context.Context, ref reference.Reference, got artifact.Content) {
	s.countBytes(ref, got)
	scope := s.access.Scope(ctx, ref)
	if got.Manifest == nil {
		s.Store.Put(scope, got.Digest(), got.Archive)
		return
	}
	for _, file := range got.Files {
		s.Store.Put(scope, layout.PartOf(file.Name, file.Data).Digest, file.Data)
	}
	s.Store.Put(scope, got.Digest(), got.Manifest)
}

// stored returns what is on disk, in whole: if a file of a bundle is missing, or was
// damaged, all of it is downloaded again.
func (s *Sources) stored(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, bool) {
	scope := s.access.Scope(ctx, ref)
	data, found := s.Store.Get(scope, digest)
	if !found || ref.Kind != artifact.KindBundle || artifact.IsCompressed(data) {
		return artifact.Content{Archive: data}, found
	}
	parts, listed, err := layout.Parts(data, s.Limits)
	if !listed || err != nil {
		return artifact.Content{Archive: data}, true // no archive either: that is found out when it is unpacked
	}
	got := artifact.Content{Manifest: data, Files: make([]artifact.File, 0, len(parts))}
	for _, p := range parts {
		file, found := s.Store.Get(scope, p.Digest)
		if !found || int64(len(file)) != p.Size {
			return artifact.Content{}, false
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: file})
	}
	return got, true
}
