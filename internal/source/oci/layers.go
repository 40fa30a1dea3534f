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
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
)

// layered fetches the files of a bundle whose manifest lists them; false if the
// digest isn't that of such a manifest.
func (a Artifact) layered(ctx context.Context, repository *orasremote.Repository, c *auth.Client, digest string) (artifact.Content, bool, error) {
	_, manifest, err := readManifest(ctx, repository, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return artifact.Content{}, false, nil
	}
	if err != nil {
		return artifact.Content{}, false, err
	}
	parts, layered, err := layout.Parts(manifest, c.Limits)
	if !layered || err != nil {
		return artifact.Content{}, false, err
	}
	got := artifact.Content{Manifest: manifest, Files: make([]artifact.File, 0, len(parts))}
	for _, p := range parts {
		data, err := fetchLayer(ctx, repository, c, p)
		if err != nil {
			return artifact.Content{}, false, err
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: data})
	}
	return got, true, nil
}

// fetchLayer gets one file from a registry, and verifies its size and digest.
func fetchLayer(ctx context.Context, repository *orasremote.Repository, c *auth.Client, p layout.Part) ([]byte, error) {
	layer := ocispec.Descriptor{MediaType: layerType, Digest: digest.Digest(p.Digest), Size: p.Size}
	body, err := repository.Blobs().Fetch(ctx, layer)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, failure.Gone(p.Digest, "publish the release again, under another version")
	}
	if err != nil {
		return nil, err
	}
	defer auth.Release(body)
	data, err := c.Read(ctx, body, p.Size, "file "+failure.Quote(p.Name), p.Size)
	if err == nil && layout.PartOf(p.Name, data) != p {
		err = orascontent.ErrMismatchedDigest
	}
	return data, err
}

// layerType is any type of a layer: a blob is asked for by its digest alone.
const layerType = "application/octet-stream"
