// SPDX-License-Identifier: Apache-2.0

package reference

import "k8s.io/utils/ptr"

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
