// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"net/url"
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
)

// Remote reports whether the chart is on another host.
func (r Reference) Remote() bool { return r.remote().name != "" }

// SecretRef returns the Secret of credentials that the reference names, nil if it names none.
func (r Reference) SecretRef() *addonsv1.CredentialsReference { return r.remote().secret }

// PlainHTTP reports whether the object lets the chart come without TLS.
func (r Reference) PlainHTTP() bool { return ptr.Deref(r.remote().plainHTTP, false) }

// DigestField returns the expected digest, and the field it is in.
func (r Reference) DigestField() (digest, field string) {
	at := r.remote()
	return *at.digest, at.name + ".digest"
}

// WithDigest returns the reference with this digest in its field.
func (r Reference) WithDigest(digest string) Reference {
	r.Chart = *r.Chart.DeepCopy()
	*r.remote().digest = digest
	return r
}

// WithVersion returns the reference with this version in its field, or fields.
func (r Reference) WithVersion(version string) Reference {
	r.Chart = *r.Chart.DeepCopy()
	if at := r.remote(); at.followed.Pin != nil {
		at.followed.Pin(version)
	} else {
		r.Chart.Version = version
	}
	return r
}

// Address says which chart on another host is meant, and nothing of how to get it. The
// reference has to be [Reference.Remote]; see [Reference.Subject] for any.
func (r Reference) Address() string {
	at := r.remote()
	address := at.address(r.Chart.Version)
	if *at.digest != "" {
		address += "@" + *at.digest
	}
	return address
}

// NamesDigest reports whether the object itself says by its digest which content it means. A
// digest that was found for a version doesn't.
func (r Reference) NamesDigest() bool {
	digest, _ := r.DigestField()
	return digest != "" && !r.Found
}

// Host returns the host that the credentials are for, and the path below it.
func (r Reference) Host() (host, path string) {
	base := r.Base()
	if at := r.remote(); at.path != nil {
		return base.Host, at.path()
	}
	return base.Host, strings.Trim(base.Path, "/")
}

// Base returns the URL that the credentials are for. The API lets only such pass that
// can be parsed; another one has no host, and can't be asked. The reference has to be
// [Reference.Remote].
func (r Reference) Base() *url.URL {
	at := r.remote()
	if at.base != nil {
		return at.base()
	}
	return parsed(at.url)
}

// RepositoryHost returns the host that people know the source by, and write credentials down for.
func (r Reference) RepositoryHost() string {
	if at := r.remote(); at.host != nil {
		return at.host()
	}
	return r.Base().Host
}

func parsed(written string) *url.URL {
	base, err := url.Parse(written)
	if err != nil {
		return &url.URL{}
	}
	return base
}

// TagOf returns a version as a tag, which can't have a plus sign.
func TagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// SameVersion compares versions as they are written and as they are in tags.
func SameVersion(a, b string) bool {
	return strings.TrimPrefix(TagOf(a), "v") == strings.TrimPrefix(TagOf(b), "v")
}

// visit identifies the address together with how it is asked: two references with
// the same may share the answer, in which namespaces ever they are.
func (r Reference) visit() string {
	at, base := r.remote(), r.Base()
	address := r.Address()
	if at.asked != "" {
		address = at.asked + "@" + *at.digest
	}
	visit := address + " over " + base.Scheme + r.Kind.Suffix()
	if r.PlainHTTP() && base.Scheme != "http" { // what it refers to may come without TLS
		visit += " or http"
	}
	if at.by != "" {
		visit += " by " + at.by
	}
	if at.InCluster {
		visit += " of " + r.Namespace
	}
	if secret := r.SecretRef(); secret != nil {
		visit += " with Secret " + r.Namespace + "/" + secret.Name
	}
	return visit
}

// Source identifies where the reference's versions come from, and how it is asked.
func (r Reference) Source() string {
	r = r.WithDigest("")
	r.Chart.Version = ""
	at := r.remote()
	if at.forAll != nil {
		at.forAll()
		r.Kind = artifact.KindChart
	}
	if at.Releases {
		return r.String() + " with tags " + at.tagPrefix
	}
	return r.String()
}
