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
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// Artifact is a chart, or something else, in an OCI registry. Its digest is that of the layer with the
// archive: the blob can be had by it, and no tag is looked at any more.
type Artifact struct {
	*addonsv1.OCISource
	version string
	kind    artifact.Kind
	named   bool // Digest is the object's own; see [reference.Reference.NamesDigest]
}

// New is the place of what is in a registry.
func New(r reference.Reference) Artifact {
	return Artifact{r.Chart.OCI, r.Chart.Version, r.Kind, r.NamesDigest()}
}

// Resolve finds the layer.
func (c Artifact) Resolve(ctx context.Context, as *guest.Guest) (string, error) {
	repository, err := c.repository(as)
	if err != nil {
		return "", err
	}
	described, manifest, err := c.manifest(ctx, repository)
	if err != nil {
		return "", err
	}
	if c.kind == artifact.KindBundle {
		return layout.Bundle(described, manifest)
	}
	if c.kind.Verbatim() {
		return layout.Archive(manifest)
	}
	return layout.Chart(manifest)
}

// manifest asks for the one of the digest, or else of the tag.
func (c Artifact) manifest(ctx context.Context, repository *orasremote.Repository) (ocispec.Descriptor, []byte, error) {
	none := ocispec.Descriptor{}
	reference, what, wayOut := reference.TagOf(c.version), "tag "+reference.TagOf(c.version), `oci.url or version. A tag is the version written just so, with "v" or without`
	if c.Digest != "" {
		reference, what, wayOut = c.Digest, "manifest "+c.Digest, "oci.url or oci.digest"
		if c.version != "" {
			wayOut += ". " + place.IfFollowed
		}
	}
	described, body, err := repository.Manifests().FetchReference(ctx, reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return none, nil, failure.NotPublished("the registry has no %s of %s, or doesn't show it to these credentials; publish it, or correct %s", what, c.kind.Noun(), wayOut)
	}
	if err != nil {
		return none, nil, err
	}
	defer guest.Release(body)
	if described.Size > layout.MaxManifest {
		return none, nil, failure.TooLarge("the manifest", layout.MaxManifest)
	}
	if c.Digest != "" && described.Digest.String() != c.Digest {
		return none, nil, failure.New(failure.DigestMismatch, "the registry's manifest isn't the one of oci.digest; push it again, or correct oci.digest")
	}
	// It verifies size and digest.
	manifest, err := orascontent.ReadAll(body, described)
	if err != nil {
		return none, nil, err
	}
	return described, manifest, nil
}

// Fetch gets the blob with the digest, or the files that a manifest lists.
func (c Artifact) Fetch(ctx context.Context, as *guest.Guest, digest string) (artifact.Content, error) {
	repository, err := c.repository(as)
	if err != nil {
		return artifact.Content{}, err
	}
	if c.kind == artifact.KindBundle {
		if got, found, err := c.layered(ctx, repository, as, digest); found || err != nil {
			return got, err
		}
	}
	described, body, err := repository.Blobs().FetchReference(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return artifact.Content{}, failure.Gone(digest, "set oci.digest to the manifest that is to be installed, or publish "+c.kind.Noun()+" under another version")
	}
	if err != nil {
		return artifact.Content{}, err
	}
	defer guest.Release(body)
	if described.Size > as.Limits.ArchiveBytes {
		return artifact.Content{}, failure.TooLarge("the archive", as.Limits.ArchiveBytes)
	}
	archive, err := room.Read(ctx, body, described.Size, "the archive", as.Limits.ArchiveBytes)
	if err != nil {
		return artifact.Content{}, err
	}
	got := artifact.Content{Archive: archive, From: siteOf(as, len(archive)).Title()}
	if got.Digest() != digest {
		return artifact.Content{}, failure.New(failure.DigestMismatch, "what the registry sends isn't the content with the digest that was asked for: it is damaged, or was tampered with; push it again")
	}
	return got, nil
}

// Probe asks how large the blob is.
func (c Artifact) Probe(ctx context.Context, as *guest.Guest, digest string, among func(place.Site) bool) (bool, error) {
	repository, err := c.repository(as)
	if err != nil {
		return false, err
	}
	described, err := repository.Blobs().Resolve(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) && c.kind == artifact.KindBundle { // it is that of a manifest which lists files
		described, err = repository.Manifests().Resolve(ctx, digest)
	}
	return err == nil && among(siteOf(as, described.Size)), err
}

// siteOf is where a repository's blobs are. Each has its digest in its address.
func siteOf[T int | int64](as *guest.Guest, bytes T) place.Site {
	return place.Site{URL: as.Ref.Base().String(), Bytes: int64(bytes)}
}

func (c Artifact) repository(as *guest.Guest) (*orasremote.Repository, error) {
	repository, err := orasremote.NewRepository(strings.TrimPrefix(c.URL, reference.OCIScheme))
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "oci.url is no address of a repository in a registry; correct it")
	}
	repository.PlainHTTP = ptr.Deref(c.PlainHTTP, false)
	repository.Client = as.Registry
	repository.MaxMetadataBytes = layout.MaxManifest
	repository.ManifestMediaTypes = []string{ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex}
	return repository, nil
}
