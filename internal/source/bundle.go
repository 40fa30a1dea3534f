// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

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

// pinned is the digest that a revision says the reference has: what that is was
// found out when the revision was made, and the source isn't asked again.
func (r Reference) pinned() string {
	if r.Bundle != nil || r.Kind == artifact.KindBundle {
		return r.Chart.Digest
	}
	return ""
}

// bundled is the origin of charts, and other artifacts, in bundles.
type bundled struct{ sources *Sources }

func (b bundled) resolve(ctx context.Context, ref Reference) (string, error) {
	bundle, err := b.sources.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return "", err
	}
	key := bundle.Digest + " " + ref.Chart.Path + ref.Kind.Suffix()
	if digest, known := b.sources.inBundles.Get(key); known {
		return digest, nil
	}
	got, err := bundle.content(ref.Chart.Path, ref.Kind)
	if err != nil {
		return "", err
	}
	digest := got.Digest()
	b.sources.inBundles.Put(key, digest)
	return digest, nil
}

func (b bundled) fetch(ctx context.Context, ref Reference, _ string) (artifact.Content, error) {
	bundle, err := b.sources.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return artifact.Content{}, err
	}
	return bundle.content(ref.Chart.Path, ref.Kind)
}

// versionInBundle is the path in a bundle that is pinned, "" if it isn't.
func (r Reference) versionInBundle() string {
	if r.Bundle.Digest == "" {
		return ""
	}
	return r.Bundle.Digest + " " + r.Chart.Path + r.Kind.Suffix()
}

// expects checks the digest that the reference itself says.
func (r Reference) expects(digest string) error {
	if r.Chart.Digest == "" || r.Chart.Digest == digest {
		return nil
	}
	return failure.New(failure.DigestMismatch, "its digest is %s, not %s; put the right content there, or correct %s.digest", digest, r.Chart.Digest, r.Kind.Field())
}

// changed is the error of content that isn't what was resolved.
func (r Reference) changed() error {
	if r.pinned() == "" {
		return failure.Changed()
	}
	other := failure.New(failure.DigestMismatch, "its content isn't what the stack's revision was made of; it is used with the stack's next revision")
	other.Wait = true
	return other
}
