// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

const (
	// ProvenanceSuffix ends the names of files that are beside an archive, and are none.
	ProvenanceSuffix = ".prov"
	// MaxProvenance bounds a provenance file: a Chart.yaml and a signature.
	MaxProvenance = 256 << 10 // bytes
)

// archiveNames are what `helm package` may call the reference's chart; "*" stands for anything. A
// provenance file has to name it so: the keys that signed this chart signed others, and
// older ones.
func archiveNames(r reference.Reference) []string {
	chart, version := "", strings.TrimPrefix(r.Chart.Version, "v")
	switch {
	case r.Chart.GitHub != nil: // its version is that in the signed Chart.yaml
		return []string{reference.AssetPattern(r.Chart.GitHub)}
	case r.Chart.Helm != nil:
		chart = r.Chart.Helm.Chart
	case r.Chart.OCI != nil:
		chart = path.Base(r.Chart.OCI.URL)
	}
	if version == "" { // the digest says which
		return []string{chart + "-*.tgz"}
	}
	return []string{chart + "-" + version + ".tgz", chart + "-v" + version + ".tgz"}
}

// CheckProvenance passes content with the digest if its provenance file says so, signed
// as the policy wants.
func (p Policy) CheckProvenance(file []byte, digest string, ref reference.Reference) error {
	names := archiveNames(ref)
	fits := func(name string) bool {
		return slices.ContainsFunc(names, func(pattern string) bool { return reference.FitsAsset(pattern, name) })
	}
	err := p.Keyring.Verify(file, digest, fits, p.Now)
	if flaw, ok := errors.AsType[*verify.Flaw](err); ok {
		return p.Refuse(failure.SignatureInvalid, "its provenance file doesn't count: "+flaw.Error(), "have "+names[0]+" signed by that")
	}
	return err
}

// Unsigned is the error of content without any signature.
func (p Policy) Unsigned(where, wayOut string) *failure.Error {
	missing := p.Refuse(failure.SignatureMissing, "it has no signature ("+where+")", wayOut)
	missing.Wait = true
	return missing
}
