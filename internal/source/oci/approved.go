// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// approved checks that what is signed is signed as the version that is wanted: the tag
// isn't covered by the signature, so an older manifest could be shown in place of a
// newer one. A chart says its version itself, which is compared when it is read. All others have
// it in their manifest, or in a file that the manifest names by its digest; none of both
// is needed if the object names the manifest's own digest.
func (a Artifact) approved(ctx context.Context, repository *orasremote.Repository, manifest ocispec.Manifest) error {
	if a.kind == artifact.KindChart || a.version == "" {
		return nil
	}
	says := manifest.Annotations[ocispec.AnnotationVersion]
	if says != "" && reference.SameVersion(says, a.version) {
		return nil
	}
	if a.kind == artifact.KindBundle {
		if known, err := a.isRelease(ctx, repository, manifest); known || err != nil {
			return err
		}
	}
	switch {
	case says != "":
		return failure.New(failure.SignatureInvalid, "what is signed is version %s (annotation %s of the manifest), not %s; publish it under its own version, or correct version",
			failure.Quote(says), ocispec.AnnotationVersion, failure.Quote(a.version))
	case a.named:
		return nil
	}
	return failure.New(failure.SignatureInvalid, "its manifest is signed, but doesn't say of which version it is; push and sign one with the annotation %s=%s, or name this one in oci.digest",
		ocispec.AnnotationVersion, a.version)
}

// isRelease compares the signed release of a Cluster Stack with the version. It is false
// of any other bundle.
func (a Artifact) isRelease(ctx context.Context, repository *orasremote.Repository, manifest ocispec.Manifest) (known bool, _ error) {
	titled := func(layer ocispec.Descriptor) bool {
		return layer.Annotations[ocispec.AnnotationTitle] == clusterstack.MetadataFile
	}
	at := slices.IndexFunc(manifest.Layers, titled)
	if at < 0 {
		return false, nil
	}
	metadata, err := fetchPart(ctx, repository.Blobs(), manifest.Layers[at], clusterstack.MaxFileBytes)
	switch {
	case errors.Is(err, errUnreadable): // whoever reads the bundle says what is wrong with it
		return false, nil
	case errors.Is(err, errdef.ErrNotFound):
		return false, failure.Gone(manifest.Layers[at].Digest.String(), "publish the release again, under another version")
	case err != nil:
		return false, err
	}
	names := make([]string, 0, len(manifest.Layers))
	for _, layer := range manifest.Layers {
		names = append(names, layer.Annotations[ocispec.AnnotationTitle])
	}
	opened, err := a.opener.Open(ctx, &opener.Job{YAML: &opener.YAML{Data: metadata}})
	if err != nil {
		return false, nil //nolint:nilerr // whoever reads the bundle says what is wrong with it
	}
	known, err = layout.IsRelease(a.version, opened.JSON, names)
	if err != nil {
		return true, failure.New(failure.SignatureInvalid, "%w", err)
	}
	return known, nil
}
