// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// accepts checks that the content is what the reference calls it, as far as the content says
// that itself: the keys that signed it signed other things, and older ones, and whoever may
// move a tag can show one of these.
func (s *Sources) accepts(r reference.Reference, got *Artifact) error {
	required := s.required.For(r)
	switch {
	case r.Kind == artifact.KindBundle:
		return acceptsRelease(r, got)
	case r.Kind.Verbatim():
		return nil // see [oci.Artifact.Verify]
	}
	if err := acceptsName(r, got, required); err != nil {
		return err
	}
	return acceptsVersion(r, got, required || r.Chart.Verify != nil)
}

// acceptsName checks the name of a chart that is signed with cosign. A provenance file
// says it, too.
func acceptsName(r reference.Reference, got *Artifact, required bool) error {
	if r.Chart.OCI == nil || !required && (r.Chart.Verify == nil || r.Chart.Verify.Cosign == nil) {
		return nil
	}
	if want := path.Base(r.Chart.OCI.URL); got.name != want {
		return failure.New(failure.SignatureInvalid, "what is signed is chart %s, not %s, as the last part of oci.url says; publish the signed chart in a repository of its own name, or correct oci.url",
			failure.Quote(got.name), failure.Quote(want))
	}
	return nil
}

// acceptsVersion checks that content which was named by its digest is the version that
// the reference says beside it: who changes one of both, and forgets the other, is told.
func acceptsVersion(r reference.Reference, got *Artifact, verified bool) error {
	digest, field := r.DigestField()
	if digest == "" && !verified || r.Chart.Version == "" {
		return nil
	}
	if r.Chart.GitHub != nil && !verified {
		return nil // there, version is that of the release, and whether the digest is of it was asked there
	}
	switch {
	case reference.SameVersion(got.version, r.Chart.Version):
		return nil
	case r.Found:
		return failure.New(failure.DigestMismatch, "what is published as version %s holds version %s of the chart; publish it anew, or leave it out of the range", failure.Quote(r.Chart.Version), failure.Quote(got.version))
	case digest == "":
		return failure.New(failure.SignatureInvalid, "what is signed is version %s of the chart, not %s; publish the signed chart under its own version, or correct version", failure.Quote(got.version), failure.Quote(r.Chart.Version))
	}
	return failure.New(failure.DigestMismatch, "%s is version %s of the chart, not %s; correct one of both", field, failure.Quote(got.version), failure.Quote(r.Chart.Version))
}

// acceptsRelease checks that the release of a Cluster Stack is the one that its tag
// names. Of bundles with other tags, and others that are no release, nothing is known.
func acceptsRelease(r reference.Reference, got *Artifact) error {
	published := r.Chart.Version
	if at := r.Chart.GitHub; at != nil {
		published = at.TagPrefix + published
	}
	if _, err := clusterstack.ParseTag(published); err != nil || got.metadata == nil {
		return nil //nolint:nilerr // it is published as something else
	}
	names := namesOf(got.Files)
	root := layout.OnlyDirectory(names)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], root)
	}
	if known, err := layout.IsRelease(published, got.metadata, names); known && err != nil {
		reason := failure.ArtifactInvalid
		if r.Chart.Verify != nil {
			reason = failure.SignatureInvalid
		}
		return failure.New(reason, "%w", err)
	}
	return nil
}
