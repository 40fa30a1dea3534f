// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Accept checks that the content is what the reference calls it, as far as the content or
// its signed text says that. The keys that signed it signed other things, and older ones. An
// attacker who may move a tag can show one of these.
func Accept(r reference.Reference, got *Artifact, says string, required bool) error {
	byCosign := r.Traits().Registry && (required || r.Chart.Verify != nil && r.Chart.Verify.Cosign != nil)
	switch {
	case r.Kind.Verbatim():
		return acceptFiles(r, got, says, byCosign)
	case byCosign && got.name != r.ChartName(): // a provenance file says the name, too
		return failure.New(failure.SignatureInvalid, "what is signed is chart %s, not %s, as the last part of oci.url says; publish the signed chart in a repository of its own name, or correct oci.url",
			failure.Quote(got.name), failure.Quote(r.ChartName()))
	}
	return acceptVersion(r, got, required || r.Chart.Verify != nil)
}

// acceptVersion checks that content which was named by its digest is the version that
// the reference says beside it: who changes one of both, and forgets the other, is told.
func acceptVersion(r reference.Reference, got *Artifact, verified bool) error {
	digest, field := r.DigestField()
	wanted, is := failure.Quote(r.Chart.Version), failure.Quote(got.version)
	switch {
	case digest == "" && !verified, r.Chart.Version == "", reference.SameVersion(got.version, r.Chart.Version):
		return nil
	case r.Traits().Releases && !verified:
		return nil // there, version is that of the release, and whether the digest is of it was asked there
	case r.Found:
		return failure.New(failure.DigestMismatch, "what is published as version %s holds version %s of the chart; publish it again, or leave it out of the range", wanted, is)
	case digest == "":
		return failure.New(failure.SignatureInvalid, "what is signed is version %s of the chart, not %s; publish the signed chart under its own version, or correct version", is, wanted)
	}
	return failure.New(failure.DigestMismatch, "%s is version %s of the chart, not %s; correct one of both", field, is, wanted)
}

// acceptFiles checks that the release of a Cluster Stack is the one that its tag names, and
// that all else says its version in its manifest, if that is signed. None of both is needed if
// the object names the manifest's own digest.
func acceptFiles(r reference.Reference, got *Artifact, says string, signed bool) error {
	published := r.Tag()
	_, notATag := clusterstack.ParseTag(published)
	if got.metadata != nil && (signed || notATag == nil) {
		names := artifact.Names(got.Files)
		root := artifact.OnlyDirectory(names)
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], root)
		}
		reason := failure.ArtifactInvalid
		if signed {
			reason = failure.SignatureInvalid
		}
		if known, err := layout.IsRelease(published, got.metadata, names); err != nil {
			return failure.New(reason, "%w", err)
		} else if known {
			return nil
		}
	}
	switch {
	case !signed, r.Chart.Version == "", reference.SameVersion(says, r.Chart.Version), says == "" && r.NamesDigest():
		return nil
	case says == "":
		return failure.New(failure.SignatureInvalid, "its manifest is signed, but doesn't say of which version it is; push and sign one with the annotation org.opencontainers.image.version=%s, or name this one in oci.digest", r.Chart.Version)
	}
	return failure.New(failure.SignatureInvalid, "what is signed is version %s (annotation org.opencontainers.image.version of the manifest), not %s; publish it under its own version, or correct version",
		failure.Quote(says), failure.Quote(r.Chart.Version))
}
