// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// layered fetches the files of a bundle whose manifest lists them; false if the
// digest isn't that of such a manifest.
func (c Artifact) layered(ctx context.Context, repository *orasremote.Repository, as *guest.Guest, digest string) (artifact.Content, bool, error) {
	described, body, err := repository.Manifests().FetchReference(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return artifact.Content{}, false, nil
	}
	if err != nil {
		return artifact.Content{}, false, err
	}
	defer guest.Release(body)
	if described.Size > layout.MaxManifest {
		return artifact.Content{}, false, failure.TooLarge("the manifest", layout.MaxManifest)
	}
	manifest, err := orascontent.ReadAll(body, described)
	if err != nil {
		return artifact.Content{}, false, err
	}
	parts, layered, err := layout.Parts(manifest, as.Limits)
	if !layered || err != nil {
		return artifact.Content{}, false, err
	}
	if err := room.Reserve(ctx, layout.Size(parts)); err != nil {
		return artifact.Content{}, false, err
	}
	got := artifact.Content{Manifest: manifest, Files: make([]artifact.File, 0, len(parts)), From: siteOf(as, len(manifest)).Title()}
	for _, p := range parts {
		data, err := fetchLayer(ctx, repository, p)
		if err != nil {
			return artifact.Content{}, false, err
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: data})
	}
	return got, true, nil
}

// fetchLayer gets one file from a registry. Its size and digest are verified.
func fetchLayer(ctx context.Context, repository *orasremote.Repository, p layout.Part) ([]byte, error) {
	layer := ocispec.Descriptor{MediaType: layerType, Digest: digest.Digest(p.Digest), Size: p.Size}
	body, err := repository.Blobs().Fetch(ctx, layer)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, failure.Gone(p.Digest, "publish the release again, under another version")
	}
	if err != nil {
		return nil, err
	}
	defer guest.Release(body)
	return orascontent.ReadAll(room.Measured(ctx, body), layer)
}

// layerType is any type of a layer: a blob is asked for by its digest alone.
const layerType = "application/octet-stream"
