// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// accepts checks that content which was named by its digest is the version that
// the reference says beside it: who changes one of both, and forgets the other, is told.
func (r Reference) accepts(artifact *Artifact) error {
	digest, field := r.digestField()
	if digest == "" && r.Chart.Verify == nil || r.Chart.Version == "" || r.Kind.Verbatim() {
		return nil
	}
	if r.Chart.GitHub != nil && r.Chart.Verify == nil {
		return nil // there, version is that of the release, and whether the digest is of it was asked there
	}
	_, is := dependency.ChartOf(artifact.Files)
	same := strings.TrimPrefix(is, "v") == strings.TrimPrefix(r.Chart.Version, "v")
	if digest == "" && !same {
		// Who signed it signed other versions, too, and whoever may move a tag can show one of them.
		return failure.New(failure.SignatureInvalid, "what is signed is version %s of the chart, not version; publish the signed chart under its own version", failure.Quote(is))
	}
	if !same {
		return failure.New(failure.DigestMismatch, "%s is version %s of the chart, not version; correct one of both", field, failure.Quote(is))
	}
	return nil
}
