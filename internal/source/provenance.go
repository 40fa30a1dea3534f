// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

const (
	// provenanceLayer is the type of a layer that is a provenance file.
	provenanceLayer = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	// maxProvenance bounds a provenance file: a Chart.yaml and a signature.
	maxProvenance = 256 << 10 // bytes
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
		return archiveName{version: r.Chart.Version, pattern: githubRelease{GitHubSource: at}.pattern()}
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
		return matches(n.pattern, name)
	}
	rest, is := strings.CutPrefix(name, n.chart+"-")
	version, packed := strings.CutSuffix(rest, ".tgz")
	if !is || !packed {
		return false
	}
	return n.version == "" || strings.TrimPrefix(version, "v") == strings.TrimPrefix(n.version, "v")
}

// verify checks the provenance file beside the archive.
func (c helmChart) verify(ctx context.Context, as *guest, digest string, want policy) error {
	entry, err := c.find(ctx, as)
	if err != nil {
		return err
	}
	at, err := c.archiveURL(entry.URL)
	if err != nil {
		return err
	}
	at.Path += provenanceSuffix
	at.RawPath = ""
	file, err := as.file(ctx, at, http.Header{}, "the provenance file", maxProvenance)
	if err != nil {
		return err
	}
	if file == nil {
		return unsigned(want, "there is no "+failure.Quote(path.Base(at.Path))+" beside the archive", "package it with `helm package --sign`")
	}
	return file.judge(digest, as, want)
}

// verify checks the provenance file beside the archive.
func (r githubRelease) verify(ctx context.Context, as *guest, digest string, want policy) error {
	found, err := r.find(ctx, as)
	if err != nil {
		return err
	}
	archive, err := r.archiveIn(found)
	if err != nil {
		return err
	}
	name := archive.name + provenanceSuffix
	at := slices.IndexFunc(found.assets, func(a asset) bool { return a.name == name })
	if at < 0 {
		return unsigned(want, "the release has no file "+failure.Quote(name), "package it with `helm package --sign`, and publish its .prov beside it")
	}
	file, err := r.read(ctx, as, found.assets[at], "the provenance file", maxProvenance)
	if err != nil {
		return err
	}
	return file.judge(digest, as, want)
}

// provenance checks the provenance file that is a layer beside the archive's.
func (c ociChart) provenance(ctx context.Context, as *guest, repository *orasremote.Repository, manifest ocispec.Manifest, digest string, want policy) error {
	at := slices.IndexFunc(manifest.Layers, func(layer ocispec.Descriptor) bool { return layer.MediaType == provenanceLayer })
	if at < 0 {
		return unsigned(want, "there is no layer of type "+provenanceLayer, "package it with `helm package --sign`, and push it with its .prov beside it")
	}
	layer := manifest.Layers[at]
	if layer.Size > maxProvenance {
		return failure.TooLarge("the provenance file", maxProvenance)
	}
	file, err := fetchPart(ctx, repository.Blobs(), layer, maxProvenance)
	if errors.Is(err, errUnreadable) {
		return failure.New(failure.ArtifactInvalid, "its provenance file has a digest that isn't SHA-256; push it again")
	}
	if err != nil {
		return err
	}
	return judgeProvenance(file, digest, as, want)
}

// judge checks a provenance file that is beside the archive. There are servers that
// call each file a page: only what starts as one is.
func (f *sentFile) judge(digest string, as *guest, want policy) error {
	if artifact.StartsAsPage(f.data) {
		return webPage(f.host)
	}
	return judgeProvenance(f.data, digest, as, want)
}

func judgeProvenance(file []byte, digest string, as *guest, want policy) error {
	err := want.keyring.Verify(file, digest, archiveNames(as.ref).fits, want.now)
	var flaw *verify.Flaw
	if errors.As(err, &flaw) {
		return failure.New(failure.SignatureInvalid, "its provenance file doesn't count: %s. verify wants %s to be signed by %s; have it signed by that, or correct verify",
			flaw, archiveNames(as.ref), want.who())
	}
	return err
}
