// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"net/url"
	"path"
	"strings"

	"k8s.io/utils/ptr"
	"oras.land/oras-go/v2/registry"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// OCIScheme starts the addresses of registries.
const OCIScheme = "oci://"

// kinds has a row for each kind of source on other hosts. It returns a remote without a name for a source of another kind.
var kinds = []func(addonsv1.ChartSource) remote{ociKind, helmKind, httpKind, githubKind, gitKind, fluxKind}

// remote is a source on another host.
type remote struct {
	Traits
	name      string // of the field
	url       string
	secret    *addonsv1.CredentialsReference
	plainHTTP *bool
	digest    *string

	// address returns the one for people, of a version, and without the digest.
	address func(version string) string
	// asked is the address that is asked, "" if it is the one for people. By is where else it is asked, "" for the usual place.
	asked, by string
	// base returns the URL that the credentials are for, and path what is below its host. They are nil for url and its path.
	base func() *url.URL
	path func() string
	// host returns the one that people know the source by, nil for that of base.
	host     func() string
	followed Followed
	// forAll takes out what of a repository is meant, if all that is in one has one list of versions; nil if it hasn't. It changes
	// the source that the remote is of.
	forAll func()
	// tagPrefix is what tags have before the version.
	tagPrefix string
	// chart is the name that the address has for a chart, "" for any. Archive is the pattern of the name of its archive,
	// "" if that has chart and version.
	chart, archive string
}

// Followed is how a source's versions are followed. All of it is about the object that the reference was made of.
type Followed struct {
	// Of is what has versions, "" if there are none.
	Of string
	// Digest is the field that names the content of a version.
	Digest *string
	// Version returns the one that the source names, "" for none, Pin has it name one, and Line returns the line of versions that it
	// follows otherwise. They are nil for the fields beside the source.
	Version func() string
	Pin     func(version string)
	Line    func() (versions.Line, error)
	// IsWatched says that a watch tells of versions: to ask for them costs nothing.
	IsWatched bool
}

// Followed returns how the versions of the reference's source are followed.
func (r Reference) Followed() Followed {
	at := r.remote()
	at.followed.Digest, at.followed.IsWatched = at.digest, at.InCluster
	return at.followed
}

// Traits are by what kinds of sources differ, for those who ask them.
type Traits struct {
	// Registry says that a digest which an object names is a manifest's, that cosign signs it, and that tokens are
	// another host's.
	Registry bool
	// Releases says that a version is that of a release, which alone tells whether a digest is of it.
	Releases bool
	// Commits says that content is at a path of a commit.
	Commits bool
	// Provenance says that charts can have provenance files.
	Provenance bool
	// AnyPath says that an object may name any path of the host.
	AnyPath bool
	// InCluster says that an object of the reference's namespace tells where the content is.
	InCluster bool
}

func (r Reference) remote() remote {
	for _, of := range kinds {
		if at := of(r.Chart); at.name != "" {
			return at
		}
	}
	return remote{digest: new(string)}
}

// asChart returns the address of an artifact as that of a chart, which has all of its fields.
func asChart(a *addonsv1.ArtifactSource) addonsv1.ChartSource {
	return addonsv1.ChartSource{
		Path: a.Path, ConfigMap: a.ConfigMap, Secret: a.Secret, OCI: a.OCI, HTTP: a.HTTP, GitHub: a.GitHub, Git: a.Git, Flux: a.Flux, Version: a.Version, Verify: a.Verify,
	}
}

// Traits returns those of the reference's kind of source; none if it isn't on another host.
func (r Reference) Traits() Traits { return r.remote().Traits }

func ociKind(c addonsv1.ChartSource) remote {
	at := c.OCI
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{Registry: true, Provenance: true},
		name:   "oci", url: at.URL, secret: at.SecretRef, plainHTTP: at.PlainHTTP, digest: &at.Digest, chart: path.Base(at.URL),
		followed: Followed{Of: at.URL},
		address: func(version string) string {
			if version == "" || at.Digest != "" {
				return at.URL
			}
			return at.URL + ":" + TagOf(version)
		},
		base: func() *url.URL {
			named, err := registry.ParseReference(strings.TrimPrefix(at.URL, OCIScheme))
			if err != nil {
				return &url.URL{}
			}
			base := &url.URL{Scheme: "https", Host: named.Host(), Path: "/" + named.Repository}
			if ptr.Deref(at.PlainHTTP, false) {
				base.Scheme = "http"
			}
			return base
		},
	}
}

func helmKind(c addonsv1.ChartSource) remote {
	at := c.Helm
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{Provenance: true},
		name:   "helm", url: at.URL, secret: at.SecretRef, plainHTTP: at.PlainHTTP, digest: &at.Digest, chart: at.Chart,
		followed: Followed{Of: at.URL + " " + at.Chart},
		address: func(version string) string {
			address := strings.TrimSuffix(at.URL, "/") + "/" + at.Chart
			if version != "" {
				address += " " + version
			}
			return address
		},
	}
}

func httpKind(c addonsv1.ChartSource) remote {
	at := c.HTTP
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{AnyPath: true},
		name:   "http", url: at.URL, asked: at.URL, secret: at.SecretRef, plainHTTP: at.PlainHTTP, digest: &at.Digest,
		address: func(string) string {
			address, _, _ := strings.Cut(at.URL, "?") // which may have what isn't for every eye
			return address
		},
	}
}

// ChartName returns the name that the address has for a chart, "" if it has none.
func (r Reference) ChartName() string { return r.remote().chart }

// Tag returns the version as the source has it.
func (r Reference) Tag() string { return r.remote().tagPrefix + r.Chart.Version }

// ArchiveNames returns patterns of the names that `helm package` may give to the reference's chart, in which "*" stands for any
// characters. A provenance file has to name it so: the keys that signed this chart signed others, and older ones.
func (r Reference) ArchiveNames() []string {
	at, version := r.remote(), strings.TrimPrefix(r.Chart.Version, "v")
	switch {
	case at.archive != "": // its version is that in the signed Chart.yaml
		return []string{at.archive}
	case version == "": // the digest says which
		return []string{at.chart + "-*.tgz"}
	}
	return []string{at.chart + "-" + version + ".tgz", at.chart + "-v" + version + ".tgz"}
}
