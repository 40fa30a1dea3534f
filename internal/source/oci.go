// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"regexp"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/utils/ptr"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// maxManifest bounds a manifest. That of a chart has less than 4 KiB, most of it annotations.
const maxManifest = 1 << 20 // bytes

// maxManifestValues bounds what is in one: those of releases have some hundred layers.
const maxManifestValues = 20_000

// Media types of the layer that is the chart's archive.
const (
	chartLayer       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	legacyChartLayer = "application/tar+gzip" // of Helm before 3.7
)

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ociChart is a chart in an OCI registry. Its digest is that of the layer with the
// archive: the blob can be had by it, and no tag is looked at any more.
type ociChart struct {
	*addonsv1.OCISource
	version string
	kind    artifact.Kind
	named   bool // Digest is the object's own; see [Reference.named]
}

func (c ociChart) resolve(ctx context.Context, as *guest) (string, error) {
	repository, err := c.repository(as)
	if err != nil {
		return "", err
	}
	described, manifest, err := c.manifest(ctx, repository)
	if err != nil {
		return "", err
	}
	if c.kind == artifact.KindBundle {
		return digestOfBundle(described, manifest)
	}
	if c.kind.Verbatim() {
		return filesOfManifest(manifest)
	}
	return chartOfManifest(manifest)
}

// manifest asks for the one of the digest, or else of the tag.
func (c ociChart) manifest(ctx context.Context, repository *orasremote.Repository) (ocispec.Descriptor, []byte, error) {
	none := ocispec.Descriptor{}
	reference, what, wayOut := reference.TagOf(c.version), "tag "+reference.TagOf(c.version), `oci.url or version. A tag is the version written just so, with "v" or without`
	if c.Digest != "" {
		reference, what, wayOut = c.Digest, "manifest "+c.Digest, "oci.url or oci.digest"
		if c.version != "" {
			wayOut += ". " + ifFollowed
		}
	}
	described, body, err := repository.Manifests().FetchReference(ctx, reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return none, nil, notPublished("the registry has no %s of %s, or doesn't show it to these credentials; publish it, or correct %s", what, c.kind.Noun(), wayOut)
	}
	if err != nil {
		return none, nil, err
	}
	defer release(body)
	if described.Size > maxManifest {
		return none, nil, failure.TooLarge("the manifest", maxManifest)
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

// chartOfManifest finds the layer with the archive.
func chartOfManifest(data []byte) (string, error) {
	var manifest ocispec.Manifest
	if err := yamllimit.DecodeJSON(data, maxManifestValues, &manifest); err != nil {
		return "", noManifest()
	}
	found := ""
	for _, layer := range manifest.Layers {
		if layer.MediaType != chartLayer && layer.MediaType != legacyChartLayer {
			continue // as of provenance
		}
		if found != "" {
			return "", failure.New(failure.ArtifactInvalid, "it has more than one layer with a chart; push it with `helm push`")
		}
		found = layer.Digest.String()
	}
	switch {
	case found == "" && manifest.MediaType == ocispec.MediaTypeImageIndex:
		return "", failure.New(failure.ArtifactInvalid, "it is an index of several artefacts; name the chart's own manifest in oci.digest")
	case found == "":
		return "", failure.New(failure.ArtifactInvalid, "it is no Helm chart: there is no layer of type %s; push it with `helm push`", chartLayer)
	case !sha256Digest.MatchString(found):
		return "", failure.New(failure.ArtifactInvalid, "its chart has a digest that isn't SHA-256; push it with `helm push`")
	}
	return found, nil
}

func (c ociChart) fetch(ctx context.Context, as *guest, digest string) (artifact.Content, error) {
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
		return artifact.Content{}, gone(digest, "set oci.digest to the manifest that is to be installed, or publish "+c.kind.Noun()+" under another version")
	}
	if err != nil {
		return artifact.Content{}, err
	}
	defer release(body)
	if described.Size > as.limits.ArchiveBytes {
		return artifact.Content{}, failure.TooLarge("the archive", as.limits.ArchiveBytes)
	}
	archive, err := room.Read(ctx, body, described.Size, "the archive", as.limits.ArchiveBytes)
	if err != nil {
		return artifact.Content{}, err
	}
	got := artifact.Content{Archive: archive, From: siteOf(as, len(archive)).title()}
	if got.Digest() != digest {
		return artifact.Content{}, failure.New(failure.DigestMismatch, "what the registry sends isn't the content with the digest that was asked for: it is damaged, or was tampered with; push it again")
	}
	return got, nil
}

func (c ociChart) probe(ctx context.Context, as *guest, digest string, among func(site) bool) (bool, error) {
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
func siteOf[T int | int64](as *guest, bytes T) site {
	return site{url: as.ref.Base().String(), bytes: int64(bytes)}
}

func (c ociChart) repository(as *guest) (*orasremote.Repository, error) {
	repository, err := orasremote.NewRepository(strings.TrimPrefix(c.URL, reference.OCIScheme))
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "oci.url is no address of a repository in a registry; correct it")
	}
	repository.PlainHTTP = ptr.Deref(c.PlainHTTP, false)
	repository.Client = as.registry
	repository.MaxMetadataBytes = maxManifest
	repository.ManifestMediaTypes = []string{ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex}
	return repository, nil
}

// noManifest is the error of a manifest that can't be read.
func noManifest() *failure.Error {
	return failure.New(failure.ArtifactInvalid, "its manifest is no JSON; push it again, or correct oci.url")
}

// notPublished is the error of a chart that the source doesn't have.
func notPublished(format string, args ...any) *failure.Error {
	missing := failure.New(failure.ArtifactNotFound, format, args...)
	missing.Wait = true
	return missing
}

// gone is the error of a version that isn't what it was.
func gone(digest, wayOut string) *failure.Error {
	return failure.New(failure.ArtifactChanged, "the source no longer has the content that this version was resolved to (%s); %s", digest, wayOut)
}
