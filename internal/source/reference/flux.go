// SPDX-License-Identifier: Apache-2.0

package reference

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// fluxKind has no host that credentials are for: the object says where its artifact is, and source-controller wants none.
func fluxKind(c addonsv1.ChartSource) remote {
	at := c.Flux
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{InCluster: true},
		name:   "flux", plainHTTP: new(true), digest: &at.Digest,
		followed: Followed{
			Of: at.Kind + " " + at.Name, Version: func() string { return at.Revision }, Pin: func(version string) { at.Revision, at.Digest = version, "" },
			Line: func() (versions.Line, error) { return versions.Latest{What: "artifact of Flux"}, nil },
		},
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
