// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// ChartOf refers to a chart from an object in the namespace.
func ChartOf(namespace string, chart addonsv1.ChartSource) Reference {
	return Reference{Namespace: namespace, Chart: chart}
}

// KustomizationOf refers to a kustomization from an object in the namespace.
func KustomizationOf(namespace string, kustomization *addonsv1.KustomizationSource) Reference {
	return Reference{Namespace: namespace, Chart: asChart(&kustomization.ArtifactSource), Kind: artifact.KindKustomization}
}

// ManifestsOf refers to manifests from an object in the namespace.
func ManifestsOf(namespace string, manifests *addonsv1.ManifestsSource) Reference {
	return Reference{Namespace: namespace, Chart: asChart(&manifests.ArtifactSource), Kind: artifact.KindManifests}
}

// AddonOf refers to what an add-on of an object in the namespace is made of. The bundle
// is the one that paths are in, nil if that is the artifact root.
func AddonOf(namespace string, addon *addonsv1.Addon, bundle *addonsv1.BundleSource) Reference {
	switch {
	case addon.Kustomization != nil:
		return KustomizationOf(namespace, addon.Kustomization).In(bundle)
	case addon.Manifests != nil:
		return ManifestsOf(namespace, addon.Manifests).In(bundle)
	}
	return ChartOf(namespace, addon.Chart).In(bundle)
}

// asChart is the address of an artifact as that of a chart, which has all of its fields.
func asChart(a *addonsv1.ArtifactSource) addonsv1.ChartSource {
	return addonsv1.ChartSource{
		Path: a.Path, ConfigMap: a.ConfigMap, Secret: a.Secret, OCI: a.OCI, HTTP: a.HTTP, GitHub: a.GitHub, Version: a.Version, Verify: a.Verify,
	}
}

// held is the name under which what unpacking came to is remembered: the same
// archive may be good files, and no chart.
func (r Reference) held(digest string) string { return digest + r.Kind.Suffix() }

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
