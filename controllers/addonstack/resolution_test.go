// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

func followingStack() *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name, s.UID, s.Generation = "team", "platform", "1", 1
	s.Spec.Addons = []addonsv1.Addon{{
		Name: "web", Chart: addonsv1.ChartSource{Version: "~1.4", OCI: &addonsv1.OCISource{URL: "oci://example.org/web"}},
	}}
	return s
}

// following returns the resolution of an add-on that has version 1.4.2, and whose source couldn't be polled.
func following(addon string, failed *failure.Error) *resolution {
	s := followingStack()
	s.Spec.Addons[0].Name = addon
	return resolve(s, stack.Followers(&s.Spec), stack.Pins{addon: {Version: "1.4.2"}}, &versionPoll{results: map[string]pollResult{addon: {err: failed}}})
}

// ready returns SourcesReady of a stack of which nobody else has asked a source.
func ready(f *resolution) metav1.Condition {
	var sources []addonsv1.StackSource
	for _, w := range f.followed {
		sources = append(sources, addonsv1.StackSource{Addon: w.Name, Conditions: []metav1.Condition{f.availability(w.Name, availableCondition())}})
	}
	return sourcesReady(f, sources)
}

func TestResolve(t *testing.T) {
	refused := &failure.Error{Reason: failure.DigestMismatch, Err: errors.New("it is damaged")}
	pin := func(version string) stack.Pin { return stack.Pin{Version: version, Digest: "sha256:" + version} }
	for name, tc := range map[string]struct {
		current   string
		found     pollResult
		suspend   bool
		want      string
		available string
		status    metav1.ConditionStatus
		reason    string
	}{
		"nothing is known":                 {status: metav1.ConditionUnknown, reason: addonsv1.SourcesPendingReason},
		"the first version":                {found: pollResult{newest: "1.4.2", pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
		"a newer version":                  {current: "1.4.2", found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, want: "1.4.3", status: metav1.ConditionTrue},
		"nothing new":                      {current: "1.4.2", found: pollResult{newest: "1.4.2"}, want: "1.4.2", status: metav1.ConditionTrue},
		"the newest one was withdrawn":     {current: "1.4.3", found: pollResult{newest: "1.4.2", withdrawn: "1.4.3"}, want: "1.4.3", status: metav1.ConditionFalse, reason: failure.ArtifactNotFound},
		"the one before was withdrawn":     {current: "1.4.3", found: pollResult{newest: "1.4.3", withdrawn: "1.4.2"}, want: "1.4.3", status: metav1.ConditionTrue},
		"withdrawn while suspended":        {current: "1.4.2", found: pollResult{newest: "1.4.3", withdrawn: "1.4.2"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: failure.ArtifactNotFound},
		"another instance has seen more":   {current: "1.4.9", found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, want: "1.4.9", status: metav1.ConditionTrue},
		"suspended":                        {current: "1.4.2", found: pollResult{newest: "1.4.3"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended after it was found":     {current: "1.4.2", found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended, and nothing runs yet":  {found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, suspend: true, want: "1.4.3", status: metav1.ConditionTrue},
		"a newer version can't be used":    {current: "1.4.2", found: pollResult{newest: "1.4.3", err: refused}, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: failure.DigestMismatch},
		"the first version can't be used":  {found: pollResult{newest: "1.4.3", err: refused}, status: metav1.ConditionUnknown, reason: failure.DigestMismatch},
		"there is no first version":        {found: pollResult{err: failure.NotPublished("there is none")}, status: metav1.ConditionUnknown, reason: failure.ArtifactNotFound},
		"the source is down at first":      {found: pollResult{err: failure.New(failure.SourceUnavailable, "it is down")}, status: metav1.ConditionUnknown, reason: failure.SourceUnavailable},
		"the source is down":               {current: "1.4.2", found: pollResult{err: refused}, want: "1.4.2", status: metav1.ConditionFalse, reason: failure.DigestMismatch},
		"a digest is found for what there": {current: "1.4.2", found: pollResult{newest: "1.4.2", pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(tc.suspend)}
			var current stack.Pins
			if tc.current != "" {
				current = stack.Pins{"web": {Version: tc.current}}
			}
			o := &versionPoll{results: map[string]pollResult{"web": tc.found}}
			f := resolve(s, stack.Followers(&s.Spec), current, o)
			if w := f.of("web"); w.pin.Version != tc.want || w.available() != tc.available || w.waits() != (tc.want == "") {
				t.Errorf("pin %v, available %q; want %q, available %q", w.pin, w.available(), tc.want, tc.available)
			}
			c := ready(f)
			if tc.reason == "" {
				tc.reason = addonsv1.SourcesReadyReason
			}
			if c.Status != tc.status || c.Reason != tc.reason {
				t.Errorf("condition %v", c)
			}
		})
	}
}
