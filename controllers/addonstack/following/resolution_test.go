// SPDX-License-Identifier: Apache-2.0

package following_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/stacks"
)

func TestResolve(t *testing.T) {
	refused := &failure.Error{Reason: failure.DigestMismatch, Err: errors.New("it is damaged")}
	pin := func(version string) stack.Pin { return stack.Pin{Version: version, Digest: "sha256:" + version} }
	for name, tc := range map[string]struct {
		current   string
		found     following.Found
		suspend   bool
		want      string
		available string
		status    metav1.ConditionStatus
		reason    string
	}{
		"nothing is known":                 {status: metav1.ConditionUnknown, reason: addonsv1.SourcesPendingReason},
		"the first version":                {found: following.Found{Newest: "1.4.2", Pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
		"a newer version":                  {current: "1.4.2", found: following.Found{Newest: "1.4.3", Pin: pin("1.4.3")}, want: "1.4.3", status: metav1.ConditionTrue},
		"nothing new":                      {current: "1.4.2", found: following.Found{Newest: "1.4.2"}, want: "1.4.2", status: metav1.ConditionTrue},
		"the newest one was withdrawn":     {current: "1.4.3", found: following.Found{Newest: "1.4.2", Withdrawn: "1.4.3"}, want: "1.4.3", status: metav1.ConditionFalse, reason: failure.ArtifactNotFound},
		"the one before was withdrawn":     {current: "1.4.3", found: following.Found{Newest: "1.4.3", Withdrawn: "1.4.2"}, want: "1.4.3", status: metav1.ConditionTrue},
		"withdrawn while suspended":        {current: "1.4.2", found: following.Found{Newest: "1.4.3", Withdrawn: "1.4.2"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: failure.ArtifactNotFound},
		"another instance has seen more":   {current: "1.4.9", found: following.Found{Newest: "1.4.3", Pin: pin("1.4.3")}, want: "1.4.9", status: metav1.ConditionTrue},
		"suspended":                        {current: "1.4.2", found: following.Found{Newest: "1.4.3"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended after it was found":     {current: "1.4.2", found: following.Found{Newest: "1.4.3", Pin: pin("1.4.3")}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended, and nothing runs yet":  {found: following.Found{Newest: "1.4.3", Pin: pin("1.4.3")}, suspend: true, want: "1.4.3", status: metav1.ConditionTrue},
		"a newer version can't be used":    {current: "1.4.2", found: following.Found{Newest: "1.4.3", Err: refused}, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: failure.DigestMismatch},
		"the first version can't be used":  {found: following.Found{Newest: "1.4.3", Err: refused}, status: metav1.ConditionUnknown, reason: failure.DigestMismatch},
		"there is no first version":        {found: following.Found{Err: failure.NotPublished("there is none")}, status: metav1.ConditionUnknown, reason: failure.ArtifactNotFound},
		"the source is down at first":      {found: following.Found{Err: failure.New(failure.SourceUnavailable, "it is down")}, status: metav1.ConditionUnknown, reason: failure.SourceUnavailable},
		"the source is down":               {current: "1.4.2", found: following.Found{Err: refused}, want: "1.4.2", status: metav1.ConditionFalse, reason: failure.DigestMismatch},
		"a digest is found for what there": {current: "1.4.2", found: following.Found{Newest: "1.4.2", Pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			s := stacks.Following()
			s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(tc.suspend)}
			var current stack.Pins
			if tc.current != "" {
				current = stack.Pins{"web": {Version: tc.current}}
			}
			o := &following.Poll{Results: map[string]following.Found{"web": tc.found}}
			f := following.Resolve(s, stack.Followers(&s.Spec), current, o)
			if w := f.Of("web"); w.Pin.Version != tc.want || w.Available() != tc.available || w.Waits() != (tc.want == "") {
				t.Errorf("pin %v, available %q; want %q, available %q", w.Pin, w.Available(), tc.want, tc.available)
			}
			c := stacks.SourcesReady(f)
			if tc.reason == "" {
				tc.reason = addonsv1.SourcesReadyReason
			}
			if c.Status != tc.status || c.Reason != tc.reason {
				t.Errorf("condition %v", c)
			}
		})
	}
}
