// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
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

func TestWhenToLook(t *testing.T) {
	s := followingStack()
	start := time.Unix(1e9, 0)
	turn := stack.ScheduleOf(s.UID, nil).Next(start)
	var all outlooks
	o := all.get(s)
	expect := func(now time.Time, looking bool, why string) {
		t.Helper()
		if o.plan(s, now, true); o.looking != looking {
			t.Fatalf("looking is %v: %s", o.looking, why)
		}
	}
	expect(start, false, "after a restart of a settled stack nothing is asked")
	if got := o.again(start); got != turn.Sub(start) {
		t.Errorf("the next look is in %s, want it at the stack's own turn, in %s", got, turn.Sub(start))
	}
	expect(turn.Add(-time.Second), false, "it is early")
	expect(turn, true, "it is its turn")
	expect(turn, true, "it goes on until all have answered")
	o.finish(s, turn, false)
	expect(turn.Add(time.Minute), false, "there was nothing new")
	if !o.next.Equal(turn.Add(addonsv1.DefaultUpdateInterval)) {
		t.Errorf("the next turn is at %s", o.next)
	}

	s.Annotations = map[string]string{addonsv1.LookNowAnnotation: "now"}
	now := turn.Add(2 * time.Minute)
	expect(now, true, "somebody asks for it")
	if o.notBefore != now {
		t.Error("an older answer would do for somebody who asks")
	}
	o.finish(s, now, false)
	expect(now, false, "the annotation is still there, but not new")

	s.Generation++
	expect(now, true, "the spec is another")
	o.finish(s, now, false)
	s.UID = "2"
	if all.get(s) == o {
		t.Error("another stack of this name has the same outlook")
	}
	if o = all.get(s); o.looking {
		t.Error("it is looking")
	}
	o.plan(s, now, false)
	if !o.looking {
		t.Error("a new stack has to wait for its turn")
	}
}

func TestWhenToLookAgainAfterAFailure(t *testing.T) {
	s := followingStack()
	now := stack.ScheduleOf(s.UID, nil).Next(time.Unix(1e9, 0))
	for name, tc := range map[string]struct {
		after   time.Duration
		waiting bool
		want    time.Duration
	}{
		"a fleet has time":                          {2 * time.Second, false, followingRetry},
		"a host that asks for peace gets it":        {5 * time.Minute, false, 5 * time.Minute},
		"but no more than until the next turn":      {time.Hour, false, addonsv1.DefaultUpdateInterval},
		"a new stack waits":                         {2 * time.Second, true, 2 * time.Second},
		"a new stack sees corrected credentials":    {5 * time.Minute, true, waitingRetry},
		"a new stack of a source that says nothing": {0, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outlook{looking: true, found: map[string]finding{"web": {err: &source.Error{Reason: "X", Err: errors.New("x"), RetryAfter: tc.after}}}}
			o.finish(s, now, tc.waiting)
			if got := o.again(now); got != tc.want {
				t.Errorf("again after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestConclude(t *testing.T) {
	refused := &source.Error{Reason: source.ReasonDigestMismatch, Err: errors.New("it is damaged")}
	pin := func(version string) stack.Pin { return stack.Pin{Version: version, Digest: "sha256:" + version} }
	for name, tc := range map[string]struct {
		current   string
		found     finding
		suspend   bool
		want      string
		available string
		status    metav1.ConditionStatus
		reason    string
	}{
		"nothing is known":                 {status: metav1.ConditionUnknown, reason: addonsv1.SourcesPendingReason},
		"the first version":                {found: finding{newest: "1.4.2", pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
		"a newer version":                  {current: "1.4.2", found: finding{newest: "1.4.3", pin: pin("1.4.3")}, want: "1.4.3", status: metav1.ConditionTrue},
		"nothing new":                      {current: "1.4.2", found: finding{newest: "1.4.2"}, want: "1.4.2", status: metav1.ConditionTrue},
		"the newest one was withdrawn":     {current: "1.4.3", found: finding{newest: "1.4.2"}, want: "1.4.3", status: metav1.ConditionTrue},
		"another instance has seen more":   {current: "1.4.9", found: finding{newest: "1.4.3", pin: pin("1.4.3")}, want: "1.4.9", status: metav1.ConditionTrue},
		"suspended":                        {current: "1.4.2", found: finding{newest: "1.4.3"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended after it was found":     {current: "1.4.2", found: finding{newest: "1.4.3", pin: pin("1.4.3")}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended, and nothing runs yet":  {found: finding{newest: "1.4.3", pin: pin("1.4.3")}, suspend: true, want: "1.4.3", status: metav1.ConditionTrue},
		"a newer version can't be used":    {current: "1.4.2", found: finding{newest: "1.4.3", err: refused}, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: source.ReasonDigestMismatch},
		"the first version can't be used":  {found: finding{newest: "1.4.3", err: refused}, status: metav1.ConditionUnknown, reason: addonsv1.SourcesPendingReason},
		"the source is down":               {current: "1.4.2", found: finding{err: refused}, want: "1.4.2", status: metav1.ConditionFalse, reason: source.ReasonDigestMismatch},
		"a digest is found for what there": {current: "1.4.2", found: finding{newest: "1.4.2", pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(tc.suspend)}
			var current stack.Pins
			if tc.current != "" {
				current = stack.Pins{"web": {Version: tc.current}}
			}
			o := &outlook{found: map[string]finding{"web": tc.found}}
			f := conclude(s, stack.Followed(&s.Spec), current, o)
			if f.pins["web"].Version != tc.want || f.available["web"] != tc.available || (len(f.waiting) > 0) != (tc.want == "") {
				t.Errorf("pins %v, available %v, %d waiting; want %q, available %q", f.pins, f.available, len(f.waiting), tc.want, tc.available)
			}
			c := sourcesReady(f)
			if tc.reason == "" {
				tc.reason = addonsv1.SourcesReadyReason
			}
			if c.Status != tc.status || c.Reason != tc.reason {
				t.Errorf("condition %v", c)
			}
		})
	}
}

// Two instances that look after one stack agree on what is followed, whoever
// writes first, and without answering each other for ever.
func TestInstancesAgree(t *testing.T) {
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
			s, view := followingStack(), followingStack()
			s.Status.ObservedGeneration, s.Status.Following, view.Status.Following = tc.seen, tc.there, tc.own
			got := agreed(s, view)
			if len(got) != len(tc.wanted) || len(got) > 0 && got[0] != tc.wanted[0] {
				t.Errorf("got %v, want %v", got, tc.wanted)
			}
			s.Status.ObservedGeneration, s.Status.Following = 1, got
			if again := agreed(s, view); len(again) > 0 && again[0] != got[0] {
				t.Errorf("it is written again: %v", again)
			}
		})
	}
}
