// SPDX-License-Identifier: Apache-2.0

// Package oci gets artifacts from OCI registries, with their tags and signatures.
package oci

import (
	"context"
	"errors"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/utils/ptr"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Artifact is a chart, or something else, in an OCI registry. Its digest is that of the layer
// with the archive: the blob can be had by it, and no tag is looked at any more.
type Artifact struct {
	*addonsv1.OCISource
	version string
	kind    artifact.Kind
}

// New returns what the reference means in a registry.
func New(r reference.Reference) Artifact { return Artifact{r.Chart.OCI, r.Chart.Version, r.Kind} }

// Resolve finds the layer.
func (a Artifact) Resolve(ctx context.Context, c *auth.Client) (digest string, none artifact.Content, err error) {
	repository, err := a.repository(c)
	if err != nil {
		return "", none, err
	}
	described, manifest, err := a.manifest(ctx, repository)
	if err != nil {
		return "", none, err
	}
	digest, err = layout.Digest(a.kind, described.Digest.String(), manifest)
	return digest, none, err
}

// manifest asks for the one of the digest, or else of the tag.
func (a Artifact) manifest(ctx context.Context, repository *orasremote.Repository) (ocispec.Descriptor, []byte, error) {
	named, what, wayOut := reference.TagOf(a.version), "tag "+reference.TagOf(a.version), `oci.url or version. A tag is the version written just so, with "v" or without`
	if a.Digest != "" {
		named, what, wayOut = a.Digest, "manifest "+a.Digest, "oci.url or oci.digest. "+failure.IfFollowed
	}
	described, manifest, err := readManifest(ctx, repository, named)
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		err = notPublished(ctx, repository, "the registry has no %s here, or doesn't show it to these credentials; publish it, or correct %s", what, wayOut)
	case err == nil && a.Digest != "" && described.Digest.String() != a.Digest:
		err = failure.New(failure.DigestMismatch, "the registry's manifest isn't the one of oci.digest; push it again, or correct oci.digest")
	}
	return described, manifest, err
}

// notPublished returns the error for an artifact that isn't found. A server without the API of registries is told apart.
func notPublished(ctx context.Context, repository *orasremote.Repository, format string, args ...any) error {
	if registry, err := orasremote.NewRegistry(repository.Reference.Registry); err == nil {
		registry.PlainHTTP, registry.Client = repository.PlainHTTP, repository.Client
		if errors.Is(registry.Ping(ctx), errdef.ErrNotFound) {
			return failure.NotPublished("the server is no OCI registry, as it has nothing at /v2/; correct oci.url, or set helm or http in the place of oci")
		}
	}
	return failure.NotPublished(format, args...)
}

// readManifest reads a manifest, and verifies its digest.
func readManifest(ctx context.Context, repository *orasremote.Repository, reference string) (ocispec.Descriptor, []byte, error) {
	described, body, err := repository.Manifests().FetchReference(ctx, reference)
	if errors.Is(err, errdef.ErrSizeExceedsLimit) {
		err = failure.TooLarge("the manifest", layout.MaxManifest)
	}
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	defer auth.Release(body)
	if described.Size > layout.MaxManifest {
		return ocispec.Descriptor{}, nil, failure.TooLarge("the manifest", layout.MaxManifest)
	}
	manifest, err := orascontent.ReadAll(body, described)
	return described, manifest, err
}

// Fetch gets the blob with the digest, or the files that a manifest lists.
func (a Artifact) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	repository, err := a.repository(c)
	if err != nil {
		return artifact.Content{}, err
	}
	if a.kind == artifact.KindBundle {
		_, manifest, err := readManifest(ctx, repository, digest)
		switch {
		case err == nil:
			return fetchFiles(ctx, repository, c, manifest)
		case !errors.Is(err, errdef.ErrNotFound): // else it is no manifest
			return artifact.Content{}, err
		}
	}
	archive, err := fetchBlob(ctx, repository, digest, "the archive", c.Limits.ArchiveBytes)
	return artifact.Content{Archive: archive}, err
}

// fetchFiles gets the files of a bundle whose manifest lists them.
func fetchFiles(ctx context.Context, repository *orasremote.Repository, c *auth.Client, manifest []byte) (artifact.Content, error) {
	parts, listed, err := layout.Parts(manifest, c.Limits)
	if err == nil && !listed {
		err = failure.New(failure.ArtifactInvalid, "its manifest lists no files; push it again")
	}
	got := artifact.Content{Manifest: manifest, Files: make([]artifact.File, 0, len(parts))}
	for _, p := range parts {
		data, err := fetchBlob(ctx, repository, p.Digest, "file "+failure.Quote(p.Name), p.Size)
		if err != nil {
			return artifact.Content{}, err
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: data})
	}
	return got, err
}

// fetchBlob gets a blob, and verifies its digest.
func fetchBlob(ctx context.Context, repository *orasremote.Repository, digest, what string, most int64) ([]byte, error) {
	described, body, err := repository.Blobs().FetchReference(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, failure.Gone(digest, "set oci.digest to the manifest that is to be installed, or publish it under another version")
	}
	if err != nil {
		return nil, err
	}
	defer auth.Release(body)
	data, err := auth.Read(body, described.Size, what, most)
	if err == nil && artifact.DigestOf(data) != digest {
		err = failure.New(failure.DigestMismatch, "what the registry sends isn't the content with the digest that was asked for: it is damaged, or was tampered with; push it again")
	}
	return data, err
}

func (a Artifact) repository(c *auth.Client) (*orasremote.Repository, error) {
	repository, err := orasremote.NewRepository(strings.TrimPrefix(a.URL, reference.OCIScheme))
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "oci.url is no address of a repository in a registry; correct it")
	}
	repository.PlainHTTP = ptr.Deref(a.PlainHTTP, false)
	repository.Client = c.Registry
	repository.MaxMetadataBytes = layout.MaxManifest
	repository.ManifestMediaTypes = []string{ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex}
	return repository, nil
}

// Pin returns the digest of the version's manifest.
func (a Artifact) Pin(ctx context.Context, c *auth.Client) (string, error) {
	repository, err := a.repository(c)
	if err != nil {
		return "", err
	}
	described, _, err := a.manifest(ctx, repository)
	return described.Digest.String(), err
}
