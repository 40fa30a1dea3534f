// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
)

// Dependency is where a dependency is, seen from the chart that an object refers to.
func (r Reference) Dependency(w dependency.Want) (Reference, error) {
	root := r
	root.Of = nil
	ref := Reference{Namespace: root.Namespace, Of: &root}
	if err := w.Fit(root.PlainHTTP()); err != nil {
		return ref, err
	}
	secret := root.credentialsFor().SecretRef()
	if strings.HasPrefix(w.Repository, OCIScheme) {
		ref.Chart = addonsv1.ChartSource{Version: w.Version, OCI: &addonsv1.OCISource{URL: w.InRegistry(), SecretRef: secret}}
		// Whether a registry has TLS isn't in its address: the chart's own has, or hasn't.
		ref.Chart.OCI.PlainHTTP = ptr.To(root.PlainHTTP() && ref.atHost(root.credentialsFor()))
	} else {
		plain := strings.HasPrefix(w.Repository, "http://")
		ref.Chart = addonsv1.ChartSource{Version: w.Version, Helm: &addonsv1.HelmSource{URL: w.Repository, Chart: w.Name, SecretRef: secret, PlainHTTP: &plain}}
	}
	if ref.Base().Host == "" {
		return ref, failure.New(failure.ArtifactInvalid, "its repository's URL has no host; correct it, "+dependency.OrVendor)
	}
	return ref, nil
}

// MovedToRegistry says that the index of a repository names a chart in a registry.
type MovedToRegistry string

func (at MovedToRegistry) Error() string {
	return "the index says that the chart is in a registry, at " + failure.Quote(string(at)) + "; use chart.oci"
}

// Reference is the chart in the registry that the index of a repository names.
func (at MovedToRegistry) Reference(from Reference, version string) (Reference, error) {
	named, tag := string(at), ""
	if i := strings.LastIndex(named, ":"); i > strings.LastIndex(named, "/") {
		named, tag = named[:i], named[i+1:]
	}
	if tag != TagOf(version) || !dependency.IsOCIRepository(named) {
		return from, failure.New(failure.ArtifactInvalid, "the index of its repository says that it is in a registry, at %s, which is no address of this version there; correct the dependency, "+dependency.OrVendor, failure.Quote(string(at)))
	}
	ref := Reference{Namespace: from.Namespace, Of: from.Of, Chart: addonsv1.ChartSource{Version: version, OCI: &addonsv1.OCISource{URL: named}}}
	ref.Chart.OCI.SecretRef = from.SecretRef()
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

// PlainHTTP tells whether the object lets the chart come without TLS.
func (r Reference) PlainHTTP() bool {
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
	return other.Remote() && strings.EqualFold(r.Base().Host, other.Base().Host)
}

// Bound tells whether the Secret counts only as far as it names the host: it was given
// for the place of the chart, and this is a dependency somewhere else.
func (r Reference) Bound() bool {
	return r.Of != nil && r.SecretRef() != nil && !egress.SameOrigin(r.Base(), r.Of.credentialsFor().Base())
}

// Verified tells whether the object wants a signature.
func (r Reference) Verified() bool {
	return r.Chart.Verify != nil || r.Bundle != nil && r.Bundle.Verify != nil
}
