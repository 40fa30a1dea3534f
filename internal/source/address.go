// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net/url"
	"strings"

	"k8s.io/utils/ptr"
	"oras.land/oras-go/v2/registry"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

const ociScheme = "oci://"

// remote tells whether the chart is on another host.
func (r Reference) remote() bool {
	return r.Chart.OCI != nil || r.Chart.Helm != nil || r.Chart.HTTP != nil || r.Chart.GitHub != nil
}

// place of a chart on another host.
func (r Reference) place(stock *stock) place {
	switch {
	case r.Chart.OCI != nil:
		return ociChart{r.Chart.OCI, r.Chart.Version, r.Kind, r.named()}
	case r.Chart.HTTP != nil:
		return httpArchive{r.Chart.HTTP}
	case r.Chart.GitHub != nil:
		return githubRelease{r.Chart.GitHub, r.Chart.Version, r.Kind, stock}
	}
	return helmChart{r.Chart.Helm, r.Chart.Version, stock}
}

// address says which chart on another host is meant, and nothing of how to get it.
func (r Reference) address() string {
	if oci := r.Chart.OCI; oci != nil {
		if oci.Digest != "" {
			return oci.URL + "@" + oci.Digest
		}
		if r.Chart.Version == "" { // whichever is found
			return oci.URL
		}
		return oci.URL + ":" + tagOf(r.Chart.Version)
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
	address := strings.TrimSuffix(helm.URL, "/") + "/" + helm.Chart + " " + r.Chart.Version
	if helm.Digest != "" {
		address += "@" + helm.Digest
	}
	return address
}

// visit identifies the address together with how it is asked: two references with
// the same may share the answer, in which namespaces ever they are.
func (r Reference) visit() string {
	address := r.address()
	if at := r.Chart.HTTP; at != nil {
		address = at.URL + "@" + at.Digest
	}
	visit := address + " over " + r.base().Scheme + r.Kind.Suffix()
	if at := r.Chart.GitHub; at != nil && at.APIURL != "" {
		visit += " by " + at.APIURL
	}
	if secret := r.secretRef(); secret != nil {
		visit += " with Secret " + r.Namespace + "/" + secret.Name
	}
	if r.bound() {
		visit += ", as far as it names the host"
	}
	return visit
}

// secretRef of the reference, nil if it names none.
func (r Reference) secretRef() *addonsv1.CredentialsReference {
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

// digestField is the expected digest, and the field it is in.
func (r Reference) digestField() (digest, field string) {
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

// named tells whether the object itself says by its digest which content it means. A
// digest that was found for a version doesn't.
func (r Reference) named() bool {
	digest, _ := r.digestField()
	return digest != "" && !r.found
}

// given is the archive's digest, if the object itself names it.
func (r Reference) given() string {
	switch {
	case r.Chart.HTTP != nil:
		return r.Chart.HTTP.Digest
	case r.Chart.GitHub != nil:
		return r.Chart.GitHub.Digest
	case r.Chart.Helm != nil:
		return r.Chart.Helm.Digest
	}
	return "" // that of oci is the manifest's
}

// host that the credentials are for, and the path below it.
func (r Reference) host() (host, path string) {
	base := r.base()
	if at := r.Chart.GitHub; at != nil {
		return base.Host, repositoryOf(at)
	}
	return base.Host, strings.Trim(base.Path, "/")
}

// base is the URL that the credentials are for. The API lets only such pass that
// can be parsed; another one has no host, and can't be asked.
func (r Reference) base() *url.URL {
	switch {
	case r.Chart.Helm != nil:
		return parsed(r.Chart.Helm.URL)
	case r.Chart.HTTP != nil:
		return parsed(r.Chart.HTTP.URL)
	case r.Chart.GitHub != nil:
		return apiOf(r.Chart.GitHub)
	}
	oci := r.Chart.OCI
	reference, err := registry.ParseReference(strings.TrimPrefix(oci.URL, ociScheme))
	if err != nil {
		return &url.URL{}
	}
	scheme := "https"
	if ptr.Deref(oci.PlainHTTP, false) {
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

// tagOf is a version as a tag, which can't have a plus sign.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }
