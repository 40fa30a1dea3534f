// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/web"
)

// origin of the reference. A new kind of source gets its line here.
func (s *Sources) origin(ref reference.Reference) (origin, error) {
	set := 0
	for _, isSet := range []bool{ref.Chart.Path != "", ref.Chart.ConfigMap != nil, ref.Chart.Secret != nil, ref.Chart.OCI != nil, ref.Chart.Helm != nil, ref.Chart.HTTP != nil, ref.Chart.GitHub != nil} {
		if isSet {
			set++
		}
	}
	switch {
	case set != 1:
		return nil, failure.New(failure.ArtifactInvalid, "set exactly one of path, configMap, secret, oci, helm, http and github")
	case ref.Bundle != nil && ref.Chart.Path == "":
		return nil, failure.New(failure.ArtifactInvalid, "a bundle has artifacts by their path; set path")
	case ref.Bundle != nil:
		return bundled{s}, nil
	case ref.Chart.Path != "" && s.local == nil:
		return nil, failure.New(failure.SourceDisabled, "this provider has no artifact root; start it with --artifact-root, or use another source")
	case ref.Chart.Path != "":
		return atHand{artifactRoot{s.local}, s}, nil
	case ref.Namespace == "":
		return nil, failure.New(failure.ArtifactInvalid, "the object that refers to it has no namespace; use path")
	case ref.Remote():
		return s.remote, nil
	case s.objects == nil:
		return nil, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; use another source")
	}
	return atHand{s.objects, s}, nil
}

// places are what those of each protocol share.
type places struct {
	aside    *place.Aside
	indexes  *helm.Indexes
	releases *github.Releases
}

// of is where a chart on another host is. A new protocol gets its line here.
func (p places) of(r reference.Reference) place.Place {
	switch {
	case r.Chart.OCI != nil:
		return oci.New(r)
	case r.Chart.HTTP != nil:
		return web.New(r)
	case r.Chart.GitHub != nil:
		return github.New(r, p.releases, p.aside)
	}
	return helm.New(r, p.indexes, p.aside)
}
