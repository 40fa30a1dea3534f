// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/json"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// MaxManifest bounds a manifest. That of a chart has less than 4 KiB, most of it annotations.
// Those of releases have some hundred layers of 300 bytes.
const MaxManifest = 256 << 10 // bytes

// Media types of the layer that is the chart's archive.
const (
	ChartLayer       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	legacyChartLayer = "application/tar+gzip" // of Helm before 3.7
)

// Chart finds the layer with the chart's archive, and returns its digest.
func Chart(data []byte) (string, error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return "", NoManifest()
	}
	found := ""
	for _, layer := range manifest.Layers {
		if layer.MediaType != ChartLayer && layer.MediaType != legacyChartLayer {
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
		return "", failure.New(failure.ArtifactInvalid, "it is no Helm chart: there is no layer of type %s; push it with `helm push`", ChartLayer)
	case !artifact.IsDigest(found):
		return "", failure.New(failure.ArtifactInvalid, "its chart has a digest that isn't SHA-256; push it with `helm push`")
	}
	return found, nil
}

// Archive finds the layer with the archive of files, and returns its digest. Those who
// push such artifacts agree on no type: it is the one that calls itself a compressed tar,
// or the only one.
func Archive(data []byte) (string, error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
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
	case layers[0].MediaType == ChartLayer || layers[0].MediaType == legacyChartLayer && manifest.Config.MediaType == helmConfig:
		return "", failure.New(failure.ArtifactInvalid, "it is a Helm chart; name it in spec.addons[].chart.oci")
	case !artifact.IsDigest(layers[0].Digest.String()):
		return "", failure.New(failure.ArtifactInvalid, "its layer has a digest that isn't SHA-256")
	}
	return layers[0].Digest.String(), nil
}

// helmConfig is the type of a chart's config.
const helmConfig = "application/vnd.cncf.helm.config.v1+json"

// ClusterStack is the type of a Cluster Stack's release in a registry: it has a
// layer for each file, with the file's name in its title.
const ClusterStack = "application/vnd.scs.cluster-stacks.v1"

// Layers of a Cluster Stack's release that make no add-ons.
var unusedLayers = []string{"application/vnd.scs.cluster-class.", "application/vnd.scs.node-image"}

// Bundle is the digest of the manifest, if it lists the files of the bundle, or
// that of the layer that is an archive of them.
func Bundle(described ocispec.Descriptor, data []byte) (string, error) {
	if _, layered, err := Layers(data); layered || err != nil {
		return described.Digest.String(), err
	}
	return Archive(data)
}

// Layers returns the layers that are one file each; false if the manifest lists no files.
func Layers(data []byte) (layers []ocispec.Descriptor, layered bool, err error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, false, NoManifest()
	}
	if manifest.ArtifactType != ClusterStack && manifest.Config.MediaType != ClusterStack {
		return nil, false, nil
	}
	layers = slices.DeleteFunc(manifest.Layers, func(layer ocispec.Descriptor) bool {
		return slices.ContainsFunc(unusedLayers, func(prefix string) bool { return strings.HasPrefix(layer.MediaType, prefix) })
	})
	return layers, true, nil
}

// partOfLayer is the file that is a layer.
func partOfLayer(layer ocispec.Descriptor) Part {
	return Part{Name: layer.Annotations[ocispec.AnnotationTitle], Digest: layer.Digest.String(), Size: layer.Size}
}

// NoManifest is the error of a manifest that can't be read.
func NoManifest() *failure.Error {
	return failure.New(failure.ArtifactInvalid, "its manifest is no JSON; push it again, or correct oci.url")
}
