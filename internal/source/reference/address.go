// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"net/url"
	"strings"

	"k8s.io/utils/ptr"
	"oras.land/oras-go/v2/registry"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
)

// OCIScheme starts the addresses of registries.
const OCIScheme = "oci://"

// remote is what all sources on other hosts have.
type remote struct {
	name      string // of the field
	url       string
	secret    *addonsv1.CredentialsReference
	plainHTTP *bool
	digest    *string
}

func (r Reference) remote() remote {
	switch {
	case r.Chart.OCI != nil:
		at := r.Chart.OCI
		return remote{"oci", at.URL, at.SecretRef, at.PlainHTTP, &at.Digest}
	case r.Chart.Helm != nil:
		at := r.Chart.Helm
		return remote{"helm", at.URL, at.SecretRef, at.PlainHTTP, &at.Digest}
	case r.Chart.HTTP != nil:
		at := r.Chart.HTTP
		return remote{"http", at.URL, at.SecretRef, at.PlainHTTP, &at.Digest}
	case r.Chart.GitHub != nil:
		at := r.Chart.GitHub
		return remote{"github", at.URL, at.SecretRef, at.PlainHTTP, &at.Digest}
	}
	return remote{digest: new(string)}
}

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

// Address says which chart on another host is meant, and nothing of how to get it. The
// reference has to be [Reference.Remote]; see [Reference.Subject] for any.
func (r Reference) Address() string {
	at, version := r.remote(), r.Chart.Version
	address := at.url
	switch {
	case r.Chart.HTTP != nil:
		address, _, _ = strings.Cut(address, "?") // which may have what isn't for every eye
		version = ""
	case r.Chart.Helm != nil:
		address = strings.TrimSuffix(address, "/") + "/" + r.Chart.Helm.Chart
	}
	switch {
	case version == "": // whichever is found
	case r.Chart.OCI != nil && *at.digest == "":
		address += ":" + TagOf(version)
	case r.Chart.Helm != nil:
		address += " " + version
	case r.Chart.GitHub != nil:
		address += " release " + r.Chart.GitHub.TagPrefix + version
	}
	if r.Chart.GitHub != nil && r.Chart.GitHub.Asset != "" {
		address += " file " + r.Chart.GitHub.Asset
	}
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
	if at := r.Chart.GitHub; at != nil {
		return base.Host, RepositoryOf(at)
	}
	return base.Host, strings.Trim(base.Path, "/")
}

// Base returns the URL that the credentials are for. The API lets only such pass that
// can be parsed; another one has no host, and can't be asked. The reference has to be
// [Reference.Remote].
func (r Reference) Base() *url.URL {
	switch {
	case r.Chart.Helm != nil:
		return parsed(r.Chart.Helm.URL)
	case r.Chart.HTTP != nil:
		return parsed(r.Chart.HTTP.URL)
	case r.Chart.GitHub != nil:
		return apiOf(r.Chart.GitHub)
	}
	oci := r.Chart.OCI
	reference, err := registry.ParseReference(strings.TrimPrefix(oci.URL, OCIScheme))
	if err != nil {
		return &url.URL{}
	}
	scheme := "https"
	if r.PlainHTTP() {
		scheme = "http"
	}
	return &url.URL{Scheme: scheme, Host: reference.Host(), Path: "/" + reference.Repository}
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
	address := r.Address()
	if at := r.Chart.HTTP; at != nil {
		address = at.URL + "@" + at.Digest
	}
	visit := address + " over " + r.Base().Scheme + r.Kind.Suffix()
	if r.PlainHTTP() && r.Base().Scheme != "http" { // what it refers to may come without TLS
		visit += " or http"
	}
	if at := r.Chart.GitHub; at != nil && at.APIURL != "" {
		visit += " by " + at.APIURL
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
	if at := r.Chart.GitHub; at != nil {
		return r.String() + " with tags " + at.TagPrefix
	}
	return r.String()
}

// DigestQuestion returns the name of the question that resolves the reference. A reference that
// wants another signature has a question of its own: content that it refuses may be good for
// others.
func (r Reference) DigestQuestion() string {
	question := "digest of " + r.String()
	if r.Chart.Verify == nil {
		return question
	}
	policy, err := json.Marshal(r.Chart.Verify)
	if err != nil { // it has nothing that isn't plain
		return question
	}
	return question + " for " + r.Namespace + ", verified by " + artifact.DigestOf(policy) // which may be long, while many questions are remembered
}
