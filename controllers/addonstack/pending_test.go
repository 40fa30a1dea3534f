// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
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
		"the look goes on": {want: []string{
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
			if got := told(pendingSources(s, inForce, clusters, f)); !slices.Equal(got, tc.want) {
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
	if got := told(sourcesOf(s, pins.Into(&s.Spec), nil, &resolution{})); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A process that has just begun knows nothing better than what the status has, and
// writes nothing; what a newer spec doesn't allow goes.
func TestAvailableVersionsOutliveARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		available string
		found     pollResult
		line      string
		want      string
	}{
		"nothing was looked at": {available: "1.4.3", want: "1.4.3"},
		"the first look failed": {available: "1.4.3", found: pollResult{err: &failure.Error{Reason: failure.SourceUnavailable, Err: errors.New("down")}}, want: "1.4.3"},
		"it was withdrawn":      {available: "1.4.3", found: pollResult{newest: "1.4.2"}},
		"there is a newer one":  {available: "1.4.3", found: pollResult{newest: "1.4.4"}, want: "1.4.4"},
		"it isn't allowed":      {available: "1.4.3", line: "~1.4, <1.4.3"},
		"it was taken":          {available: "1.4.2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			if tc.line != "" {
				s.Spec.Addons[0].Chart.Version = tc.line
			}
			since := metav1.NewTime(time.Unix(1, 0))
			s.Status.Following = []addonsv1.FollowedVersion{{Addon: "web", Version: "1.4.2", Since: since, Available: tc.available}}
			pins := stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:a"}}
			suspend := true
			s.Spec.Updates = &addonsv1.Updates{Suspend: &suspend}
			f := resolve(s, stack.Followers(&s.Spec), pins, &versionPoll{results: map[string]pollResult{"web": tc.found}})
			r := &Reconciler{}
			if err := r.reportFollowing(s, revisionOf(t, pins.Into(&s.Spec)), false, f); err != nil {
				t.Fatal(err)
			}
			if got := s.Status.Following[0]; got.Available != tc.want || !got.Since.Equal(&since) {
				t.Errorf("got %+v, want %q available", got, tc.want)
			}
		})
	}
}

func revisionOf(t *testing.T, spec *addonsv1.AddonStackSpec) *appsv1.ControllerRevision {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}
}
