// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"net/url"
	"strings"

	"k8s.io/utils/ptr"
	"oras.land/oras-go/v2/registry"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// OCIScheme starts the addresses of registries.
const OCIScheme = "oci://"

// Remote tells whether the chart is on another host.
func (r Reference) Remote() bool {
	return r.Chart.OCI != nil || r.Chart.Helm != nil || r.Chart.HTTP != nil || r.Chart.GitHub != nil
}

// Address says which chart on another host is meant, and nothing of how to get it. The
// reference has to be [Reference.Remote]; see [Reference.Subject] for any.
func (r Reference) Address() string {
	if oci := r.Chart.OCI; oci != nil {
		if oci.Digest != "" {
			return oci.URL + "@" + oci.Digest
		}
		if r.Chart.Version == "" { // whichever is found
			return oci.URL
		}
		return oci.URL + ":" + TagOf(r.Chart.Version)
	}
	if at := r.Chart.HTTP; at != nil {
		// A query may have what isn't for every eye. The digest says what is meant.
		withoutQuery, _, _ := strings.Cut(at.URL, "?")
		return withoutQuery + "@" + at.Digest
	}
	if at := r.Chart.GitHub; at != nil {
		return addressOfRelease(at, r.Chart.Version)
	}
	helm := r.Chart.Helm
	address := strings.TrimSuffix(helm.URL, "/") + "/" + helm.Chart
	if r.Chart.Version != "" {
		address += " " + r.Chart.Version
	}
	if helm.Digest != "" {
		address += "@" + helm.Digest
	}
	return address
}

// SecretRef of the reference, nil if it names none.
func (r Reference) SecretRef() *addonsv1.CredentialsReference {
	switch {
	case r.Chart.OCI != nil:
		return r.Chart.OCI.SecretRef
	case r.Chart.Helm != nil:
		return r.Chart.Helm.SecretRef
	case r.Chart.HTTP != nil:
		return r.Chart.HTTP.SecretRef
	case r.Chart.GitHub != nil:
		return r.Chart.GitHub.SecretRef
	}
	return nil
}

// PlainHTTP tells whether the object lets the chart come without TLS.
func (r Reference) PlainHTTP() bool {
	switch {
	case r.Chart.OCI != nil:
		return ptr.Deref(r.Chart.OCI.PlainHTTP, false)
	case r.Chart.Helm != nil:
		return ptr.Deref(r.Chart.Helm.PlainHTTP, false)
	case r.Chart.HTTP != nil:
		return ptr.Deref(r.Chart.HTTP.PlainHTTP, false)
	case r.Chart.GitHub != nil:
		return ptr.Deref(r.Chart.GitHub.PlainHTTP, false)
	}
	return false
}

// DigestField is the expected digest, and the field it is in.
func (r Reference) DigestField() (digest, field string) {
	switch {
	case r.Chart.OCI != nil:
		return r.Chart.OCI.Digest, "oci.digest"
	case r.Chart.Helm != nil:
		return r.Chart.Helm.Digest, "helm.digest"
	case r.Chart.HTTP != nil:
		return r.Chart.HTTP.Digest, "http.digest"
	case r.Chart.GitHub != nil:
		return r.Chart.GitHub.Digest, "github.digest"
	}
	return "", ""
}

// NamesDigest tells whether the object itself says by its digest which content it means. A
// digest that was found for a version doesn't.
func (r Reference) NamesDigest() bool {
	digest, _ := r.DigestField()
	return digest != "" && !r.Found
}

// GivenDigest is the archive's digest, if the object itself names it.
func (r Reference) GivenDigest() string {
	if r.Chart.OCI != nil {
		return "" // its digest is the manifest's
	}
	digest, _ := r.DigestField()
	return digest
}

// Host that the credentials are for, and the path below it.
func (r Reference) Host() (host, path string) {
	base := r.Base()
	if at := r.Chart.GitHub; at != nil {
		return base.Host, RepositoryOf(at)
	}
	return base.Host, strings.Trim(base.Path, "/")
}

// Base is the URL that the credentials are for. The API lets only such pass that
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

// TagOf is a version as a tag, which can't have a plus sign.
func TagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// SameVersion compares versions as they are written and as they are in tags.
func SameVersion(a, b string) bool {
	return strings.TrimPrefix(TagOf(a), "v") == strings.TrimPrefix(TagOf(b), "v")
}
