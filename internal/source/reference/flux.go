// SPDX-License-Identifier: Apache-2.0

package reference

import addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"

// fluxKind has no host that credentials are for: the object says where its artifact is, and source-controller wants none.
func fluxKind(c addonsv1.ChartSource) remote {
	at := c.Flux
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{InCluster: true},
		name:   "flux", plainHTTP: new(true), digest: &at.Digest,
		pin:    func(version string) { at.Pin(version, "") },
		forAll: func() { at.Revision = "" },
		address: func(string) string {
			address := at.Kind + " " + at.Name
			if at.Revision != "" {
				address += " at " + at.Revision
			}
			return address
		},
	}
}
