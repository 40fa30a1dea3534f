// SPDX-License-Identifier: Apache-2.0

// Package reference says which artifact is meant, where it is, and how it is asked for.
// It is pure: nothing is asked here.
package reference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Kinds of objects that hold charts.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference says which artifact, seen from an object in Namespace.
type Reference struct {
	// Namespace that ConfigMaps and Secrets are read from, and no other.
	Namespace string
	// Chart is the place of the artifact: a path, a ConfigMap, a Secret, a registry or a
	// repository. An artifact that isn't a chart has it, too; see [KustomizationOf].
	Chart addonsv1.ChartSource
	// Kind is what it has to be.
	Kind artifact.Kind
	// Bundle that Chart.Path is in, nil if it is in the artifact root.
	Bundle *addonsv1.BundleSource

	// Found is set if the digest was just found for the version, which may be a tag's that
	// was moved.
	Found bool
}

// String identifies what is referred to.
func (r Reference) String() string {
	switch {
	case r.Bundle != nil:
		return fmt.Sprintf("path %q", r.Chart.Path) + r.Kind.Suffix() + " in " + BundleOf(r.Namespace, r.Bundle).String()
	case r.Chart.Path != "":
		return fmt.Sprintf("path %q", r.Chart.Path) + r.Kind.Suffix()
	case r.Remote():
		return r.visit()
	}
	return r.Subject() + r.Kind.Suffix()
}

// Type returns the field of the source that is set, as "oci" or "configMap"; "" if none is.
func (r Reference) Type() string {
	switch {
	case r.Chart.ConfigMap != nil:
		return "configMap"
	case r.Chart.Secret != nil:
		return "secret"
	case r.Chart.Path != "":
		return "path"
	}
	return r.remote().name
}

// Subject returns the object, path or address that is referred to, for people: nothing of how
// to get it.
func (r Reference) Subject() string {
	switch {
	case r.Chart.ConfigMap != nil || r.Chart.Secret != nil:
		return r.Object().String()
	case r.Bundle != nil:
		return failure.Quote(r.Chart.Path) + " of the bundle"
	case r.Chart.Path != "":
		return failure.Quote(r.Chart.Path) + " of the artifact root"
	case r.Remote():
		return r.Address()
	}
	return ""
}

// Object returns the key of the ConfigMap or Secret that is referred to.
func (r Reference) Object() Object {
	kind, at := KindConfigMap, r.Chart.ConfigMap
	if at == nil {
		kind, at = KindSecret, r.Chart.Secret
	}
	return Object{Kind: kind, Namespace: r.Namespace, Name: at.Name, Key: cmp.Or(at.Key, addonsv1.DefaultArtifactKey)}
}

// Object is a key of a ConfigMap or Secret.
type Object struct{ Kind, Namespace, Name, Key string }

// Secret returns the one with the credentials. The reference has to name one; see
// [Reference.SecretRef].
func (r Reference) Secret() Object {
	return Object{Kind: KindSecret, Namespace: r.Namespace, Name: r.SecretRef().Name}
}

func (k Object) String() string {
	return fmt.Sprintf("%s %s/%s, key %q", k.Kind, k.Namespace, k.Name, k.Key)
}

// Locate says where err is, seen from the object with the reference. An error
// that isn't a [failure.Error] comes from a source that could not be asked.
func (r Reference) Locate(err error) error {
	if err == nil {
		return nil
	}
	located := *failure.Of(err)
	if located.Field == "" { // it may be remembered for others, with a field of their own
		field := strings.TrimSuffix(r.Kind.Field()+"."+r.Type(), ".")
		located.Field, located.Subject = field+located.Part, cmp.Or(located.Subject, r.Subject())
	}
	return &located
}

// Uses reports whether the reference reads an object of its namespace: a ConfigMap, a Secret, or one of Flux.
func (r Reference) Uses(kind, name string) bool {
	at := r.Chart.Flux
	return at != nil && at.Kind == kind && at.Name == name || slices.ContainsFunc(r.Objects(), func(o Object) bool { return o.Kind == kind && o.Name == name })
}

// Objects returns the ConfigMaps and Secrets that the reference reads: for what it refers
// to, credentials, or keys.
func (r Reference) Objects() []Object {
	var objects []Object
	if r.Chart.ConfigMap != nil || r.Chart.Secret != nil {
		objects = append(objects, r.Object())
	}
	if r.SecretRef() != nil {
		objects = append(objects, r.Secret())
	}
	for _, trusted := range r.Chart.Verify.References() {
		objects = append(objects, Object{Kind: trusted.Kind, Namespace: r.Namespace, Name: trusted.Name, Key: trusted.Key})
	}
	return objects
}

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

// BundleOf refers to a bundle from an object in the namespace.
func BundleOf(namespace string, bundle *addonsv1.BundleSource) Reference {
	at := asChart(&bundle.ArtifactSource)
	at.Digest = bundle.Digest
	return Reference{Namespace: namespace, Chart: at, Kind: artifact.KindBundle}
}

// In returns the same reference for an artifact with a path in a bundle. A reference with another
// address stays as it is.
func (r Reference) In(bundle *addonsv1.BundleSource) Reference {
	if r.Chart.Path != "" {
		r.Bundle = bundle
	}
	return r
}

// PinnedDigest returns the digest that a revision says the reference has: what that is was
// found out when the revision was made, and the source isn't asked again.
func (r Reference) PinnedDigest() string {
	if r.Bundle != nil || r.Kind == artifact.KindBundle {
		return r.Chart.Digest
	}
	return ""
}

// Changed returns the error of content that isn't what was resolved.
func (r Reference) Changed() error {
	if r.PinnedDigest() == "" {
		return failure.Changed()
	}
	other := failure.New(failure.DigestMismatch, "its content isn't what the stack's revision was made of; it is used with the stack's next revision")
	other.Wait = true
	return other
}
