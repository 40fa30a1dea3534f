// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// accepts checks that the content is what the reference calls it, as far as it says
// that itself (required: by the instance's own keys): the keys that signed it signed other things, and older ones, and whoever
// may move a tag can show one of these.
func accepts(r reference.Reference, files []artifact.File, required bool) error {
	switch {
	case r.Kind == artifact.KindBundle:
		return acceptsRelease(r, files)
	case r.Kind.Verbatim():
		return nil // see [oci.Artifact.Verify]
	}
	if err := acceptsName(r, files, required); err != nil {
		return err
	}
	return acceptsVersion(r, files, required || r.Chart.Verify != nil)
}

// acceptsName checks the name of a chart that is signed with cosign. A provenance file
// says it, too.
func acceptsName(r reference.Reference, files []artifact.File, required bool) error {
	if r.Chart.OCI == nil || !required && (r.Chart.Verify == nil || r.Chart.Verify.Cosign == nil) {
		return nil
	}
	name, _ := dependency.ChartOf(files)
	if want := path.Base(r.Chart.OCI.URL); name != want {
		return failure.New(failure.SignatureInvalid, "what is signed is chart %s, not %s, as the last part of oci.url says; publish the signed chart in a repository of its own name, or correct oci.url",
			failure.Quote(name), failure.Quote(want))
	}
	return nil
}

// acceptsVersion checks that content which was named by its digest is the version that
// the reference says beside it: who changes one of both, and forgets the other, is told.
func acceptsVersion(r reference.Reference, files []artifact.File, verified bool) error {
	digest, field := r.DigestField()
	if digest == "" && !verified || r.Chart.Version == "" {
		return nil
	}
	if r.Chart.GitHub != nil && !verified {
		return nil // there, version is that of the release, and whether the digest is of it was asked there
	}
	_, is := dependency.ChartOf(files)
	switch {
	case reference.SameVersion(is, r.Chart.Version):
		return nil
	case digest == "":
		return failure.New(failure.SignatureInvalid, "what is signed is version %s of the chart, not %s; publish the signed chart under its own version, or correct version", failure.Quote(is), failure.Quote(r.Chart.Version))
	}
	return failure.New(failure.DigestMismatch, "%s is version %s of the chart, not %s; correct one of both", field, failure.Quote(is), failure.Quote(r.Chart.Version))
}
