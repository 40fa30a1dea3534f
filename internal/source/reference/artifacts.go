// SPDX-License-Identifier: Apache-2.0

package reference

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
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

// BundleOf refers to a bundle from an object in the namespace.
func BundleOf(namespace string, bundle *addonsv1.BundleSource) Reference {
	at := asChart(&bundle.ArtifactSource)
	at.Digest = bundle.Digest
	return Reference{Namespace: namespace, Chart: at, Kind: artifact.KindBundle}
}

// In is the same reference for an artifact with a path in a bundle. One with
// another address stays what it is.
func (r Reference) In(bundle *addonsv1.BundleSource) Reference {
	if r.Chart.Path != "" {
		r.Bundle = bundle
	}
	return r
}

// PinnedDigest is the digest that a revision says the reference has: what that is was
// found out when the revision was made, and the source isn't asked again.
func (r Reference) PinnedDigest() string {
	if r.Bundle != nil || r.Kind == artifact.KindBundle {
		return r.Chart.Digest
	}
	return ""
}

// Changed is the error of content that isn't what was resolved.
func (r Reference) Changed() error {
	if r.PinnedDigest() == "" {
		return failure.Changed()
	}
	other := failure.New(failure.DigestMismatch, "its content isn't what the stack's revision was made of; it is used with the stack's next revision")
	other.Wait = true
	return other
}
