// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// awaiting is a stack that follows versions of add-on web, and has another one.
func awaiting() *addonsv1.AddonStack {
	s := followingStack()
	s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{
		Name: "dns", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: "oci://example.org/dns"}},
	})
	return s
}

func told(sources []addonsv1.StackSource) []string {
	var all []string
	for _, from := range sources {
		c := from.Conditions[0]
		all = append(all, fmt.Sprintf("%s %s %s %s %s", from.Addon, from.Address, c.Status, c.Reason, c.Message))
	}
	return all
}

// While a spec waits, each of its sources says for itself what is wrong, also if none
// of it was ever in force.
func TestPendingSources(t *testing.T) {
	refused := &failure.Error{Reason: failure.SourceUnauthorized, Field: "chart.oci", Err: errors.New("example.org answers 401")}
	gone := &failure.Error{Reason: failure.ArtifactNotFound, Field: "spec.source.oci", Err: errors.New("there is none")}
	for name, tc := range map[string]struct {
		change  func(*addonsv1.AddonStackSpec)
		found   pollResult
		bundle  *failure.Error
		inForce bool
		want    []string
	}{
		"the look continues": {want: []string{
			"web oci://example.org/web:~1.4 Unknown ArtifactPending Looking for its newest version",
			"dns oci://example.org/dns:1.0.0 Unknown NotAsked No cluster has asked for it yet",
		}},
		"it failed": {found: pollResult{err: refused}, want: []string{
			"web oci://example.org/web:~1.4 False SourceUnauthorized addons[web].chart.oci: example.org answers 401",
			"dns oci://example.org/dns:1.0.0 Unknown NotAsked No cluster has asked for it yet",
		}},
		"clusters have the other one": {found: pollResult{err: refused}, inForce: true, want: []string{
			"web oci://example.org/web:~1.4 False SourceUnauthorized addons[web].chart.oci: example.org answers 401",
			"dns oci://example.org/dns:1.0.0 True Available ",
		}},
		"they have another version of it": {
			change: func(spec *addonsv1.AddonStackSpec) { spec.Addons[1].Chart.Version = "2.0.0" }, found: pollResult{err: refused}, inForce: true,
			want: []string{
				"web oci://example.org/web:~1.4 False SourceUnauthorized addons[web].chart.oci: example.org answers 401",
				"dns oci://example.org/dns:2.0.0 Unknown NotAsked No cluster has asked for it yet",
			},
		},
		"its bundle isn't there": {
			change: func(spec *addonsv1.AddonStackSpec) {
				spec.Addons = nil
				spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Version: "v1", OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}}}
			},
			bundle: gone, want: []string{"spec.source oci://example.org/stacks:v1 False ArtifactNotFound spec.source.oci: there is none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, inForce := awaiting(), (*addonsv1.AddonStackSpec)(nil)
			s.Name, s.Status.LatestRevision = "base", "base-1"
			if tc.inForce {
				inForce = s.Spec.DeepCopy()
				inForce.Addons = inForce.Addons[1:]
			}
			if tc.change != nil {
				tc.change(&s.Spec)
			}
			f := resolve(s, stack.Followers(&s.Spec), nil, &versionPoll{results: map[string]pollResult{"web": tc.found}})
			f.bundle = tc.bundle
			clusters := clustersWith("dns", []addonsv1.AddonStatus{{Phase: addonsv1.AddonReady, Digest: "sha256:1"}})
			if got := told(sourcesOf(s, inForce, clusters, f)); !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// What is followed was fetched by the stack itself, whether clusters want it or not.
func TestWhatIsFollowedWasAsked(t *testing.T) {
	s := awaiting()
	pins := stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:a"}}
	want := []string{
		"web oci://example.org/web@sha256:a True Available ",
		"dns oci://example.org/dns:1.0.0 Unknown NotAsked No cluster has asked for it yet",
	}
	kept := pins.Into(&s.Spec)
	if got := told(sourcesOf(s, kept, nil, &resolution{kept: kept})); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
