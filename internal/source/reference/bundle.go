// SPDX-License-Identifier: Apache-2.0

package reference

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
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

// PinnedDigest is the digest that a revision says the reference has: what that is was
// found out when the revision was made, and the source isn't asked again.
func (r Reference) PinnedDigest() string {
	if r.Bundle != nil || r.Kind == artifact.KindBundle {
		return r.Chart.Digest
	}
	return ""
}

// VersionInBundle is the path in a bundle that is pinned, "" if it isn't.
func (r Reference) VersionInBundle() string {
	if r.Bundle.Digest == "" {
		return ""
	}
	return r.Bundle.Digest + " " + r.Chart.Path + r.Kind.Suffix()
}

// Expects checks the digest that the reference itself says.
func (r Reference) Expects(digest string) error {
	if r.Chart.Digest == "" || r.Chart.Digest == digest {
		return nil
	}
	return failure.New(failure.DigestMismatch, "its digest is %s, not %s; put the right content there, or correct %s.digest", digest, r.Chart.Digest, r.Kind.Field())
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
