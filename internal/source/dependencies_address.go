// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// What addresses in Chart.yaml have to look like: as those in the API.
var (
	dependencyName    = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z._-]{0,251}[0-9A-Za-z])?$`)
	dependencyVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]{0,127}$`)
	helmRepository    = regexp.MustCompile(`^https?://([0-9A-Za-z._-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[^?#[:space:]]*)?$`)
	ociRepository     = regexp.MustCompile(`^oci://([0-9A-Za-z.-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)+$`)
)

// maxAddress is the length of a repository's URL.
const maxAddress = 1024 // bytes

// reference is where the dependency is, seen from the chart that an object refers to.
func (w want) reference(root Reference) (Reference, error) {
	root.of = nil
	ref := Reference{Namespace: root.Namespace, of: &root}
	if err := w.fit(root.plainHTTP()); err != nil {
		return ref, err
	}
	secret := root.credentialsFor().secretRef()
	if strings.HasPrefix(w.repository, ociScheme) {
		ref.Chart = addonsv1.ChartSource{Version: w.version, OCI: &addonsv1.OCISource{URL: w.inRegistry(), SecretRef: secret}}
		// Whether a registry has TLS isn't in its address: the chart's own has, or hasn't.
		ref.Chart.OCI.PlainHTTP = ptr.To(root.plainHTTP() && ref.atHost(root.credentialsFor()))
	} else {
		plain := strings.HasPrefix(w.repository, "http://")
		ref.Chart = addonsv1.ChartSource{Version: w.version, Helm: &addonsv1.HelmSource{URL: w.repository, Chart: w.name, SecretRef: secret, PlainHTTP: &plain}}
	}
	if ref.base().Host == "" {
		return ref, failure.New(failure.ArtifactInvalid, "its repository's URL has no host; correct it, "+orVendor)
	}
	return ref, nil
}

// orVendor is the way out that is always there.
const orVendor = "or package the chart with its dependencies (`helm package --dependency-update`)"

// fit checks what Chart.yaml says, which may be anything.
func (w want) fit(plainHTTP bool) error {
	scheme, _, hasScheme := strings.Cut(w.repository, "://")
	switch {
	case isName(w.repository):
		return failure.New(failure.ArtifactInvalid, "its repository is a name that only the chart's author has an address for; set it to the repository's URL, "+orVendor)
	case scheme == "file":
		return failure.New(failure.ArtifactInvalid, "its repository is a path, and only a chart in a directory has others beside it; put the chart there as one, "+orVendor)
	case !hasScheme || scheme != "https" && scheme != "http" && scheme != "oci":
		return failure.New(failure.ArtifactInvalid, "its repository is no URL with https:// or oci://; correct it, "+orVendor)
	case scheme == "http" && !plainHTTP:
		return failure.New(failure.ArtifactRefused, "its repository has no TLS, which only a chart whose own source has plainHTTP may refer to; use https://, "+orVendor)
	case len(w.repository) > maxAddress:
		return failure.New(failure.ArtifactInvalid, "its repository's URL is longer than %d bytes", maxAddress)
	}
	return w.wellFormed(scheme)
}

// wellFormed checks that the name, the version and the address are as the API would have them.
func (w want) wellFormed(scheme string) error {
	switch {
	case !dependencyName.MatchString(w.name) || strings.HasSuffix(w.name, ".tgz"):
		return failure.New(failure.ArtifactInvalid, "its name can't be that of a chart; correct it")
	case !dependencyVersion.MatchString(w.version) || strings.HasSuffix(w.version, ".tgz"):
		return failure.New(failure.ArtifactInvalid, "its version %s can't be that of a chart; correct it", failure.Quote(w.version))
	case scheme == "oci" && !ociRepository.MatchString(w.inRegistry()):
		return failure.New(failure.ArtifactInvalid, "its repository and name make no address in a registry: oci://registry/path/chart, in lower case; correct it, "+orVendor)
	case scheme != "oci" && !helmRepository.MatchString(w.repository):
		return failure.New(failure.ArtifactInvalid, "its repository's URL isn't https://host/path without user, query and fragment; correct it, "+orVendor)
	}
	return nil
}

// inRegistry is the address of the dependency's repository in a registry.
func (w want) inRegistry() string { return strings.TrimSuffix(w.repository, "/") + "/" + w.name }

// reference is the chart in the registry that the index of a repository names.
func (at movedToRegistry) reference(from Reference, version string) (Reference, error) {
	named, tag := string(at), ""
	if i := strings.LastIndex(named, ":"); i > strings.LastIndex(named, "/") {
		named, tag = named[:i], named[i+1:]
	}
	if tag != tagOf(version) || !ociRepository.MatchString(named) {
		return from, failure.New(failure.ArtifactInvalid, "the index of its repository says that it is in a registry, at %s, which is no address of this version there", failure.Quote(string(at)))
	}
	ref := Reference{Namespace: from.Namespace, of: from.of, Chart: addonsv1.ChartSource{Version: version, OCI: &addonsv1.OCISource{URL: named}}}
	ref.Chart.OCI.SecretRef = from.secretRef()
	return ref, nil
}

// credentialsFor is the reference whose credentials are used: that of the bundle, if
// the chart is in one.
func (r Reference) credentialsFor() Reference {
	if r.Bundle != nil {
		return BundleOf(r.Namespace, r.Bundle)
	}
	return r
}

// plainHTTP tells whether the object lets the chart come without TLS.
func (r Reference) plainHTTP() bool {
	at := r.credentialsFor().Chart
	switch {
	case at.OCI != nil:
		return ptr.Deref(at.OCI.PlainHTTP, false)
	case at.Helm != nil:
		return ptr.Deref(at.Helm.PlainHTTP, false)
	case at.HTTP != nil:
		return ptr.Deref(at.HTTP.PlainHTTP, false)
	case at.GitHub != nil:
		return ptr.Deref(at.GitHub.PlainHTTP, false)
	}
	return false
}

// atHost tells whether both are at the same host and port.
func (r Reference) atHost(other Reference) bool {
	return other.remote() && strings.EqualFold(r.base().Host, other.base().Host)
}

// bound tells whether the Secret counts only as far as it names the host: it was given
// for the place of the chart, and this is a dependency somewhere else.
func (r Reference) bound() bool {
	return r.of != nil && r.secretRef() != nil && !egress.SameOrigin(r.base(), r.of.credentialsFor().base())
}

// verified tells whether the object wants a signature.
func (r Reference) verified() bool {
	return r.Chart.Verify != nil || r.Bundle != nil && r.Bundle.Verify != nil
}

// fieldOf names a dependency.
func fieldOf(file string, index int) string {
	return fmt.Sprintf("dependencies[%d] of %s", index, file)
}

// String names the dependency, and where Chart.yaml says that it is.
func (w want) String() string {
	text := w.field + " of chart " + failure.Quote(w.by) + ", " + failure.Quote(strings.TrimSpace(w.name+" "+w.version))
	if w.repository == "" {
		return text
	}
	at, err := url.Parse(w.repository)
	if err != nil || at.User != nil || at.RawQuery != "" {
		return text // the address may hold a secret
	}
	return text + " at " + failure.Quote(w.repository)
}

// refused is an error about the dependency, seen from its chart. What is said of fields
// of the API is left out: the address isn't from there.
func (w want) refused(err error) *failure.Error {
	failed := failure.Error{Reason: failure.SourceUnavailable, Err: err}
	var known *failure.Error
	if errors.As(err, &known) {
		failed = *known
	}
	said := failed.Err
	switch failed.Reason {
	case failure.ArtifactNotFound, failure.ArtifactChanged:
		what, _, _ := strings.Cut(said.Error(), "; ")
		said = errors.New(what + "; publish it there, or correct the dependency and run `helm dependency update`")
	case failure.SourceUnauthorized:
		if failed.Subject != "" && failed.Subject != w.subject {
			said = fmt.Errorf("%s: %w", failed.Subject, said) // a Secret that can't be used
			break
		}
		what, _, _ := strings.Cut(said.Error(), "; ")
		said = fmt.Errorf("%s; add credentials for its host to %s", what, w.keys)
	}
	failed.Field, failed.Subject = "", "" // those of the chart
	failed.Err = fmt.Errorf("%s: %w", w, said)
	return &failed
}
