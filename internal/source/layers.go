// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// clusterStack is the type of a Cluster Stack's release in a registry: it has a
// layer for each file, with the file's name in its title.
const clusterStack = "application/vnd.scs.cluster-stacks.v1"

// Layers of a Cluster Stack's release that make no add-ons.
var unusedLayers = []string{"application/vnd.scs.cluster-class.", "application/vnd.scs.node-image"}

// digestOfBundle is that of the manifest, if it lists the files of the bundle, or
// that of the layer that is an archive of them.
func digestOfBundle(described ocispec.Descriptor, data []byte) (string, error) {
	if _, layered, err := layersOf(data); layered || err != nil {
		return described.Digest.String(), err
	}
	return filesOfManifest(data)
}

// layersOf returns the layers that are one file each.
func layersOf(data []byte) (layers []ocispec.Descriptor, layered bool, err error) {
	var manifest ocispec.Manifest
	if err := yamllimit.DecodeJSON(data, maxManifestValues, &manifest); err != nil {
		return nil, false, noManifest()
	}
	if manifest.ArtifactType != clusterStack && manifest.Config.MediaType != clusterStack {
		return nil, false, nil
	}
	layers = slices.DeleteFunc(manifest.Layers, func(layer ocispec.Descriptor) bool {
		return slices.ContainsFunc(unusedLayers, func(prefix string) bool { return strings.HasPrefix(layer.MediaType, prefix) })
	})
	return layers, true, nil
}

// partOfLayer is the file that is a layer.
func partOfLayer(layer ocispec.Descriptor) bundlePart {
	return bundlePart{name: layer.Annotations[ocispec.AnnotationTitle], digest: layer.Digest.String(), size: layer.Size}
}

// layered fetches the files of a bundle whose manifest lists them; false if the
// digest isn't that of such a manifest.
func (c ociChart) layered(ctx context.Context, repository *orasremote.Repository, as *guest, digest string) (artifact.Content, bool, error) {
	described, body, err := repository.Manifests().FetchReference(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return artifact.Content{}, false, nil
	}
	if err != nil {
		return artifact.Content{}, false, err
	}
	defer release(body)
	if described.Size > maxManifest {
		return artifact.Content{}, false, failure.TooLarge("the manifest", maxManifest)
	}
	manifest, err := orascontent.ReadAll(body, described)
	if err != nil {
		return artifact.Content{}, false, err
	}
	parts, layered, err := partsOf(manifest, as.limits)
	if !layered || err != nil {
		return artifact.Content{}, false, err
	}
	if err := room.Reserve(ctx, sizeOf(parts)); err != nil {
		return artifact.Content{}, false, err
	}
	got := artifact.Content{Manifest: manifest, Files: make([]render.File, 0, len(parts)), From: siteOf(as, len(manifest)).title()}
	for _, p := range parts {
		data, err := p.fetch(ctx, repository)
		if err != nil {
			return artifact.Content{}, false, err
		}
		got.Files = append(got.Files, render.File{Name: p.name, Data: data})
	}
	return got, true, nil
}

// fetch gets one file from a registry. Its size and digest are verified.
func (p bundlePart) fetch(ctx context.Context, repository *orasremote.Repository) ([]byte, error) {
	layer := ocispec.Descriptor{MediaType: layerType, Digest: digest.Digest(p.digest), Size: p.size}
	body, err := repository.Blobs().Fetch(ctx, layer)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, gone(p.digest, "publish the release again, under another version")
	}
	if err != nil {
		return nil, err
	}
	defer release(body)
	return orascontent.ReadAll(room.Measured(ctx, body), layer)
}

// layerType is any type of a layer: a blob is asked for by its digest alone.
const layerType = "application/octet-stream"

// filesOfManifest finds the layer with the archive of files. Those who push such
// artifacts agree on no type: it is the one that calls itself a compressed tar, or
// the only one.
func filesOfManifest(data []byte) (string, error) {
	var manifest ocispec.Manifest
	if err := yamllimit.DecodeJSON(data, maxManifestValues, &manifest); err != nil {
		return "", failure.New(failure.ArtifactInvalid, "its manifest is no JSON")
	}
	layers := manifest.Layers
	if len(layers) > 1 {
		layers = slices.DeleteFunc(slices.Clone(layers), func(layer ocispec.Descriptor) bool {
			return !strings.HasSuffix(layer.MediaType, "tar+gzip") && !strings.HasSuffix(layer.MediaType, "tar.gzip")
		})
	}
	switch {
	case len(layers) == 0 && manifest.MediaType == ocispec.MediaTypeImageIndex:
		return "", failure.New(failure.ArtifactInvalid, "it is an index of several artefacts; name the manifest of one of them in oci.digest")
	case len(layers) != 1:
		return "", failure.New(failure.ArtifactInvalid, "%d of its %d layers are archives (.tar.gz), not one; push the files as one archive", len(layers), len(manifest.Layers))
	case layers[0].MediaType == chartLayer || layers[0].MediaType == legacyChartLayer && manifest.Config.MediaType == helmConfig:
		return "", failure.New(failure.ArtifactInvalid, "it is a Helm chart; name it in spec.addons[].chart.oci")
	case !sha256Digest.MatchString(layers[0].Digest.String()):
		return "", failure.New(failure.ArtifactInvalid, "its layer has a digest that isn't SHA-256")
	}
	return layers[0].Digest.String(), nil
}

// helmConfig is the type of a chart's config.
const helmConfig = "application/vnd.cncf.helm.config.v1+json"
