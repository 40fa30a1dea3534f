// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"path"
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

// archiveName is what `helm package` calls a chart's archive, or a pattern of that. A
// provenance file has to name it: the keys that signed this chart signed others, and
// older ones.
type archiveName struct{ chart, version, pattern string }

// archiveNames is the one of the reference's chart.
func archiveNames(r reference.Reference) archiveName {
	if helm := r.Chart.Helm; helm != nil {
		return archiveName{chart: helm.Chart, version: r.Chart.Version}
	}
	if oci := r.Chart.OCI; oci != nil {
		return archiveName{chart: path.Base(oci.URL), version: r.Chart.Version}
	}
	if at := r.Chart.GitHub; at != nil { // its version is that in the signed Chart.yaml
		return archiveName{version: r.Chart.Version, pattern: reference.AssetPattern(at)}
	}
	return archiveName{}
}

func (n archiveName) String() string {
	switch {
	case n.pattern != "":
		return n.pattern
	case n.version == "":
		return n.chart + "-*.tgz"
	}
	return n.chart + "-" + strings.TrimPrefix(n.version, "v") + ".tgz"
}

// fits tells whether a name is that of the chart's archive; of any version, if
// none is wanted: then the digest says which.
func (n archiveName) fits(name string) bool {
	if n.pattern != "" {
		return reference.FitsAsset(n.pattern, name)
	}
	rest, is := strings.CutPrefix(name, n.chart+"-")
	version, packed := strings.CutSuffix(rest, ".tgz")
	if !is || !packed {
		return false
	}
	return n.version == "" || strings.TrimPrefix(version, "v") == strings.TrimPrefix(n.version, "v")
}

// CheckProvenance passes content with the digest if its provenance file says so, signed
// as the policy wants.
func (p Policy) CheckProvenance(file []byte, digest string, ref reference.Reference) error {
	err := p.Keyring.Verify(file, digest, archiveNames(ref).fits, p.Now)
	var flaw *verify.Flaw
	if errors.As(err, &flaw) {
		return failure.New(failure.SignatureInvalid, "its provenance file doesn't count: %s. %s %s to be signed by %s; have it signed by that%s",
			flaw, p.Wants(), archiveNames(ref), p.Who(), p.OrCorrect())
	}
	return err
}

// Unsigned is the error of content without any signature.
func (p Policy) Unsigned(where, wayOut string) *failure.Error {
	missing := failure.New(failure.SignatureMissing, "it has no signature (%s); %s one by %s; %s%s", where, p.Wants(), p.Who(), wayOut, p.OrCorrect())
	missing.Wait = true
	return missing
}
