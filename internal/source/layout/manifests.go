// SPDX-License-Identifier: Apache-2.0

// Package layout says how artifacts are laid out where they are published: which layer of a
// manifest is the content, and which files a bundle has. It is pure.
package layout

import (
	"encoding/json"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// MaxManifest bounds a manifest. The manifest of a chart has less than 4 KiB, most of it
// annotations. The manifests of releases have some hundred layers of 300 bytes.
const MaxManifest = 256 << 10 // bytes

// Media types of charts.
const (
	ChartLayer       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	legacyChartLayer = "application/tar+gzip" // of Helm before 3.7
	helmConfig       = "application/vnd.cncf.helm.config.v1+json"
)

// ClusterStack is the type of a Cluster Stack's release in a registry: it has a
// layer for each file, with the file's name in its title.
const ClusterStack = "application/vnd.scs.cluster-stacks.v1"

// Layers of a Cluster Stack's release that make no add-ons.
var unusedLayers = []string{"application/vnd.scs.cluster-class.", "application/vnd.scs.node-image"}

// Parse reads a manifest.
func Parse(data []byte) (manifest ocispec.Manifest, _ error) {
	if err := json.Unmarshal(data, &manifest); err != nil {
		return manifest, failure.New(failure.ArtifactInvalid, "its manifest is no JSON; push it again, or correct oci.url")
	}
	return manifest, nil
}

// Digest finds the content of the kind in a manifest, and returns the content's digest. The
// content's digest is own, the manifest's digest, if the manifest lists files of a bundle. Else it
// is a layer's.
func Digest(kind artifact.Kind, own string, data []byte) (string, error) {
	manifest, err := Parse(data)
	switch {
	case err != nil:
		return "", err
	case kind == artifact.KindBundle && isRelease(manifest):
		return own, nil
	case kind == artifact.KindChart:
		return chartIn(manifest)
	}
	return archiveIn(manifest)
}

// chartIn finds the layer with the chart's archive.
func chartIn(manifest ocispec.Manifest) (string, error) {
	layers := slices.DeleteFunc(slices.Clone(manifest.Layers), func(layer ocispec.Descriptor) bool {
		return layer.MediaType != ChartLayer && layer.MediaType != legacyChartLayer // as of provenance
	})
	switch {
	case len(layers) == 0 && manifest.MediaType == ocispec.MediaTypeImageIndex:
		return "", failure.New(failure.ArtifactInvalid, "it is an index of several artefacts; name the chart's own manifest in oci.digest")
	case len(layers) != 1:
		return "", failure.New(failure.ArtifactInvalid, "it is no Helm chart: %d layers are of type %s, not one; push it with `helm push`", len(layers), ChartLayer)
	}
	return digestOf(layers[0])
}

// archiveIn finds the layer with the archive of files. Publishers of such artifacts agree on no
// type. The layer calls itself a compressed tar, or is the only layer.
func archiveIn(manifest ocispec.Manifest) (string, error) {
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
	case layers[0].MediaType == ChartLayer || layers[0].MediaType == legacyChartLayer && manifest.Config.MediaType == helmConfig:
		return "", failure.New(failure.ArtifactInvalid, "it is a Helm chart; name it in spec.addons[].chart.oci")
	}
	return digestOf(layers[0])
}

func digestOf(layer ocispec.Descriptor) (string, error) {
	if !artifact.IsDigest(layer.Digest.String()) {
		return "", failure.New(failure.ArtifactInvalid, "its content has a digest that isn't SHA-256; push it again")
	}
	return layer.Digest.String(), nil
}

// isRelease reports whether the layers of the manifest are one file each.
func isRelease(manifest ocispec.Manifest) bool {
	return manifest.ArtifactType == ClusterStack || manifest.Config.MediaType == ClusterStack
}
