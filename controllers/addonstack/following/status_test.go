// SPDX-License-Identifier: Apache-2.0

package following_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// Two instances that manage one stack agree on what is followed, whoever
// writes first, and without answering each other for ever.
func TestMergeFollowing(t *testing.T) {
	list := func(version, available string) []addonsv1.FollowedVersion {
		return []addonsv1.FollowedVersion{{Addon: "web", Version: version, Available: available}}
	}
	for name, tc := range map[string]struct {
		seen               int64
		there, own, wanted []addonsv1.FollowedVersion
	}{
		"the first to write":            {1, nil, list("1.4.2", ""), list("1.4.2", "")},
		"one whose cache is behind":     {1, list("1.4.3", ""), list("1.4.2", "1.4.3"), list("1.4.3", "")},
		"one that looked later":         {1, list("1.4.2", ""), list("1.4.3", ""), list("1.4.3", "")},
		"one that has seen less":        {1, list("1.4.2", "1.4.9"), list("1.4.2", "1.4.3"), list("1.4.2", "1.4.9")},
		"another spec, back to before":  {0, list("1.4.3", ""), list("1.4.2", ""), list("1.4.2", "")},
		"an add-on that isn't followed": {1, list("1.4.3", ""), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, view := stacks.Following(), stacks.Following()
			s.Status.ObservedGeneration, s.Status.Following, view.Status.Following = tc.seen, tc.there, tc.own
			got := following.Merge(s, view)
			if len(got) != len(tc.wanted) || len(got) > 0 && got[0] != tc.wanted[0] {
				t.Errorf("got %v, want %v", got, tc.wanted)
			}
			s.Status.ObservedGeneration, s.Status.Following = 1, got
			if again := following.Merge(s, view); len(again) > 0 && again[0] != got[0] {
				t.Errorf("it is written again: %v", again)
			}
		})
	}
}

// A version that the spec named exactly, and that was never found good, isn't what is
// followed; one that was found is, also if updates are suspended.
func TestWhatWasOnlyNamed(t *testing.T) {
	refused := &failure.Error{Reason: failure.SignatureMissing, Field: "chart.oci", Err: errors.New("it has no signature")}
	const digest = "sha256:6"
	for name, tc := range map[string]struct {
		found   following.Found
		suspend bool
		want    []string
		says    string
	}{
		"it can't be used, as the newest": {
			found: following.Found{Newest: "1.4.8", Err: refused},
			says: "Looking for newer versions: addons[web].chart.oci: it has no signature. Version 1.4.8 wasn't accepted. " +
				"The previous version 1.4.6 couldn't be checked. Clusters stay unchanged",
		},
		"it can be used": {
			found: following.Found{Newest: "1.4.8", Err: refused, Pin: stack.Pin{Version: "1.4.6", Digest: digest}}, want: []string{"1.4.6"},
			says: "Looking for newer versions: addons[web].chart.oci: it has no signature. So 1.4.8 isn't taken, it stays at 1.4.6",
		},
		"suspended":                       {found: following.Found{Newest: "1.4.8", Pin: stack.Pin{Version: "1.4.6", Digest: digest}}, suspend: true, want: []string{"1.4.6"}},
		"suspended, and it can't be used": {found: following.Found{Newest: "1.4.8"}, suspend: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := stacks.Following()
			s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(tc.suspend)}
			named := stack.Pins{"web": {Version: "1.4.6"}}
			f := following.Resolve(s, stack.Followers(&s.Spec), named, &following.Poll{Results: map[string]following.Found{"web": tc.found}})
			pins := stack.PinsOf(&s.Spec, f.Pins().Into(&s.Spec))
			var got []string
			for _, followed := range f.Status(s, pins, metav1.Now(), true, time.Unix(1, 0)) {
				got = append(got, followed.Version)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("following %q, want %q", got, tc.want)
			}
			if c := stacks.SourcesReady(f); c.Message != tc.says {
				t.Errorf("got  %q\nwant %q", c.Message, tc.says)
			}
		})
	}
}

// A process that has just begun knows nothing better than what the status has, and
// writes nothing; what a newer spec doesn't allow goes.
func TestAvailableVersionsOutliveARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		available string
		found     following.Found
		line      string
		want      string
	}{
		"nothing was looked at": {available: "1.4.3", want: "1.4.3"},
		"the first look failed": {available: "1.4.3", found: following.Found{Err: &failure.Error{Reason: failure.SourceUnavailable, Err: errors.New("down")}}, want: "1.4.3"},
		"it was withdrawn":      {available: "1.4.3", found: following.Found{Newest: "1.4.2"}},
		"there is a newer one":  {available: "1.4.3", found: following.Found{Newest: "1.4.4"}, want: "1.4.4"},
		"it isn't allowed":      {available: "1.4.3", line: "~1.4, <1.4.3"},
		"it was taken":          {available: "1.4.2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stacks.Following()
			if tc.line != "" {
				s.Spec.Addons[0].Chart.Version = tc.line
			}
			since := metav1.NewTime(time.Unix(1, 0))
			s.Status.Following = []addonsv1.FollowedVersion{{Addon: "web", Version: "1.4.2", Since: since, Available: tc.available}}
			pins := stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:a"}}
			suspend := true
			s.Spec.Updates = &addonsv1.Updates{Suspend: &suspend}
			f := following.Resolve(s, stack.Followers(&s.Spec), pins, &following.Poll{Results: map[string]following.Found{"web": tc.found}})
			if got := f.Status(s, pins, since, false, time.Unix(2, 0))[0]; got.Available != tc.want || !got.Since.Equal(&since) {
				t.Errorf("got %+v, want %q available", got, tc.want)
			}
		})
	}
}

func revisionOf(t *testing.T, spec *addonsv1.AddonStackSpec) *appsv1.ControllerRevision {
	t.Helper()
	data, err := json.Marshal(spec)
	must.Succeed(t, err)
	return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}
}
