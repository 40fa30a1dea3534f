// SPDX-License-Identifier: Apache-2.0

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
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
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
	named   bool // Digest is the object's own; see [reference.Reference.NamesDigest]
	opener  opener.Opener
}

// New returns what the reference means in a registry.
func New(r reference.Reference, o opener.Opener) Artifact {
	return Artifact{r.Chart.OCI, r.Chart.Version, r.Kind, r.NamesDigest(), o}
}

// Resolve finds the layer.
func (a Artifact) Resolve(ctx context.Context, c *auth.Client) (string, artifact.Content, error) {
	none := artifact.Content{}
	repository, err := a.repository(c)
	if err != nil {
		return "", none, err
	}
	described, manifest, err := a.manifest(ctx, repository)
	if err != nil {
		return "", none, err
	}
	find := layout.Chart
	switch {
	case a.kind == artifact.KindBundle:
		find = func(manifest []byte) (string, error) { return layout.Bundle(described, manifest) }
	case a.kind.Verbatim():
		find = layout.Archive
	}
	digest, err := find(manifest)
	return digest, none, err
}

// manifest asks for the one of the digest, or else of the tag.
func (a Artifact) manifest(ctx context.Context, repository *orasremote.Repository) (ocispec.Descriptor, []byte, error) {
	none := ocispec.Descriptor{}
	reference, what, wayOut := reference.TagOf(a.version), "tag "+reference.TagOf(a.version), `oci.url or version. A tag is the version written just so, with "v" or without`
	if a.Digest != "" {
		reference, what, wayOut = a.Digest, "manifest "+a.Digest, "oci.url or oci.digest"
		if a.version != "" {
			wayOut += ". " + failure.IfFollowed
		}
	}
	described, manifest, err := readManifest(ctx, repository, reference)
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return none, nil, failure.NotPublished("the registry has no %s of %s, or doesn't show it to these credentials; publish it, or correct %s", what, a.kind.Noun(), wayOut)
	case err == nil && a.Digest != "" && described.Digest.String() != a.Digest:
		return none, nil, failure.New(failure.DigestMismatch, "the registry's manifest isn't the one of oci.digest; push it again, or correct oci.digest")
	}
	return described, manifest, err
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
		if got, found, err := a.layered(ctx, repository, c, digest); found || err != nil {
			return got, err
		}
	}
	described, body, err := repository.Blobs().FetchReference(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return artifact.Content{}, failure.Gone(digest, "set oci.digest to the manifest that is to be installed, or publish "+a.kind.Noun()+" under another version")
	}
	if err != nil {
		return artifact.Content{}, err
	}
	defer auth.Release(body)
	archive, err := c.Read(ctx, body, described.Size, "the archive", c.Limits.ArchiveBytes)
	if err != nil {
		return artifact.Content{}, err
	}
	got := artifact.Content{Archive: archive}
	if got.Digest() != digest {
		return artifact.Content{}, failure.New(failure.DigestMismatch, "what the registry sends isn't the content with the digest that was asked for: it is damaged, or was tampered with; push it again")
	}
	return got, nil
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
