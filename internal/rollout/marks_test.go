// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// revisionOf returns a revision of a number with the annotations of an attempt, and others.
func revisionOf(number int64, attempt *rollout.Attempt, annotations ...string) *appsv1.ControllerRevision {
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Revision: number}
	if attempt != nil {
		attempt.Note(r)
	}
	for _, key := range annotations {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, "x")
	}
	return r
}

// Marks are of one attempt: those of an attempt before, or of an older program, are as if they weren't there.
func TestMarks(t *testing.T) {
	const rejected, halted = addonsv1.RolloutRejectedAnnotation, addonsv1.RolloutHaltedAnnotation
	whole := rollout.Attempt{Number: 3, Cause: rollout.Edited, Started: now, Completed: now}
	for name, tc := range map[string]struct {
		revision *appsv1.ControllerRevision
		want     rollout.Revision
	}{
		"no marks": {revisionOf(3, nil), rollout.Revision{}},
		"marks of an older program": {
			revisionOf(3, nil, "addons.cluster.x-k8s.io/rollout-started", "addons.cluster.x-k8s.io/rollout-completed", "addons.cluster.x-k8s.io/rollout-cause", rejected), rollout.Revision{}},
		"of this attempt":       {revisionOf(3, &whole), rollout.Revision{Cause: rollout.Edited, Started: true, Completed: true}},
		"of the attempt before": {revisionOf(4, &whole, halted, rejected), rollout.Revision{}},
		"rejected":              {revisionOf(3, &rollout.Attempt{Number: 3, Cause: rollout.Followed, Started: now, Returns: now}, rejected), rollout.Revision{Cause: rollout.Followed, Started: true, Rejected: true}},
		"halted":                {revisionOf(3, &rollout.Attempt{Number: 3, Cause: rollout.Edited, Started: now}, halted), rollout.Revision{Cause: rollout.Edited, Started: true, Halted: true}},
		"the rejection was taken back: another attempt": {revisionOf(3, &rollout.Attempt{Number: 3, Cause: rollout.Edited, Started: now, Returns: now}), rollout.Revision{}},
		"all clusters got it at once":                   {revisionOf(3, &rollout.Attempt{Number: 3, Cause: rollout.Edited, Unstaged: true}), rollout.Revision{Cause: rollout.Edited, Unstaged: true, Started: true}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Name = "r"
			if got := rollout.Revisions([]appsv1.ControllerRevision{*tc.revision})[0]; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// An attempt that begins has none of the marks before, of which approvals are the ones that open gates.
func TestBegin(t *testing.T) {
	r := revisionOf(4, &rollout.Attempt{Number: 3, Cause: rollout.Edited, Started: now, Completed: now},
		addonsv1.RolloutRejectedAnnotation, addonsv1.RolloutHaltedAnnotation, addonsv1.RolloutApprovedAnnotation, addonsv1.RolloutPromotedAnnotation)
	rollout.Begin(r, rollout.Back, false)
	if is := rollout.AttemptOf(r); is.Cause != rollout.Back || !is.Started.IsZero() || !is.Completed.IsZero() || is.Number != 4 || len(r.Annotations) != 1 {
		t.Errorf("%+v, annotations %v", is, r.Annotations)
	}
}

// One step back is the revision that was completed last before the target. A step forth again isn't one.
func TestPrevious(t *testing.T) {
	completed := func(name string) rollout.Revision {
		return rollout.Revision{Name: name, Cause: rollout.Edited, Started: true, Completed: true}
	}
	started := func(name string) rollout.Revision {
		return rollout.Revision{Name: name, Cause: rollout.Edited, Started: true}
	}
	back := rollout.Revision{Name: "a", Cause: rollout.Back, Started: true, Completed: true}
	rejected := started("b")
	rejected.Rejected = true
	for name, tc := range map[string]struct {
		revisions  []rollout.Revision // the newest first
		to         string
		want       rollout.Cause
		entry, old string
	}{
		"undo of one that isn't completed": {[]rollout.Revision{started("b"), completed("a")}, "a", rollout.Back, "a", "a"},
		"undo of a completed one":          {[]rollout.Revision{completed("b"), completed("a")}, "a", rollout.Back, "b", "a"},
		"two steps back":                   {[]rollout.Revision{completed("c"), completed("b"), completed("a")}, "a", rollout.Edited, "c", "b"},
		"forth again after a step back":    {[]rollout.Revision{back, completed("b")}, "b", rollout.Edited, "a", ""},
		"an edit after a step back":        {[]rollout.Revision{started("c"), back, completed("b")}, "a", rollout.Back, "a", "a"},
		"to what was never completed":      {[]rollout.Revision{started("c"), started("b"), completed("a")}, "b", rollout.Edited, "a", "a"},
		"after a rejection":                {[]rollout.Revision{rejected, completed("a")}, "a", rollout.Back, "a", "a"},
		"to what was rejected":             {[]rollout.Revision{started("c"), rejected, completed("a")}, "b", rollout.Edited, "a", "a"},
		"nothing completed":                {[]rollout.Revision{started("b"), started("a")}, "a", rollout.Edited, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rollout.CauseOf(tc.revisions, tc.to, true); got != tc.want {
				t.Errorf("to %s: %s", tc.to, got)
			}
			name := func(at int) string {
				if at < 0 {
					return ""
				}
				return tc.revisions[at].Name
			}
			target := rollout.Target(tc.revisions)
			if got := name(rollout.Entry(tc.revisions, target)); got != tc.entry {
				t.Errorf("one that joins gets %q", got)
			}
			if got := name(rollout.Previous(tc.revisions, target)); got != tc.old {
				t.Errorf("before it was %q", got)
			}
		})
	}
}

// A cluster goes back to what it was ready at, which may be newer than what was completed last.
func TestGoesBackTo(t *testing.T) {
	revisions := []rollout.Revision{
		{Name: "c", Cause: rollout.Edited, Started: true, Rejected: true}, {Name: "b", Cause: rollout.Edited, Started: true},
		{Name: "bad", Cause: rollout.Edited, Started: true, Rejected: true}, {Name: "a", Cause: rollout.Edited, Started: true, Completed: true},
	}
	for name, tc := range map[string]struct {
		is   addonsv1.StackStatus
		want string
	}{
		"it had the edit before":     {addonsv1.StackStatus{Revision: "c", Previous: "b"}, "b"},
		"it hasn't begun":            {addonsv1.StackStatus{Revision: "b", Previous: "a"}, "b"},
		"it had what was rejected":   {addonsv1.StackStatus{Revision: "c", Previous: "bad"}, "a"},
		"it had what is gone":        {addonsv1.StackStatus{Revision: "c", Previous: "gone"}, "a"},
		"nothing is known":           {addonsv1.StackStatus{Revision: "c"}, "a"},
		"its status isn't there yet": {addonsv1.StackStatus{}, "a"},
	} {
		if got := rollout.GoesBackTo(revisions, 0, tc.is); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := rollout.GoesBackTo(revisions[:1], 0, addonsv1.StackStatus{Revision: "c"}); got != "" {
		t.Errorf("without another revision: %q", got)
	}
}

// What a later decision has to know is noted, and no more than once.
func TestMark(t *testing.T) {
	begun := rollout.Decision{Begins: true, Last: map[string]uint64{"few": 7}, Over: []string{"canary"}}
	waves := []addonsv1.RolloutWave{{Name: "canary"}, {Name: "few"}}
	r := revisionOf(1, &rollout.Attempt{Number: 1, Cause: rollout.Edited})
	marked := func(d rollout.Decision, waves []addonsv1.RolloutWave, filter string, at time.Time) rollout.Attempt {
		rollout.Mark(r, d, waves, filter, at)
		return rollout.AttemptOf(r)
	}
	if not := marked(rollout.Decision{Over: []string{"canary"}}, waves, "", now); !not.Started.IsZero() || not.Instances != nil {
		t.Errorf("nothing has begun: %+v", not)
	}
	if is := marked(begun, waves, "", now); !is.Started.Equal(now) || len(is.Waves) != 2 || is.Instances[""].Last["few"] != 7 || len(is.Instances[""].Over) != 1 {
		t.Errorf("%+v", is)
	}
	begun.Last, begun.Over = map[string]uint64{"few": 9}, []string{"canary", "few"}
	if is := marked(begun, waves[:1], "", now.Add(time.Hour)); !is.Started.Equal(now) || len(is.Waves) != 2 || is.Instances[""].Last["few"] != 7 || len(is.Instances[""].Over) != 2 {
		t.Errorf("%+v", is)
	}
	if is := marked(begun, waves, "green", now); is.Instances["green"].Last["few"] != 9 || is.Instances[""].Last["few"] != 7 {
		t.Errorf("%+v", is)
	}
	r.Annotations[addonsv1.RolloutAttemptAnnotation] = strings.Replace(r.Annotations[addonsv1.RolloutAttemptAnnotation], "{", `{"ofANewerProgram":true,`, 1)
	before := r.DeepCopy()
	if marked(begun, waves, "green", now.Add(time.Hour)); r.Annotations[addonsv1.RolloutAttemptAnnotation] != before.Annotations[addonsv1.RolloutAttemptAnnotation] {
		t.Error("an unchanged rollout is noted again")
	}
	marked(rollout.Decision{Halt: &rollout.Halt{Wave: "few", Failed: 2}}, waves, "", now)
	if h := rollout.HaltOf(r); h == nil || h.Failed != 2 || h.Wave != "few" {
		t.Errorf("halted: %+v", h)
	}
	marked(rollout.Decision{Resume: true}, waves, "", now)
	if h := rollout.HaltOf(r); h != nil {
		t.Errorf("resumed: %+v", h)
	}
	r.Annotations[addonsv1.RolloutHaltedAnnotation] = "looking at it"
	if h := rollout.HaltOf(r); h == nil || h.Failed != 0 {
		t.Errorf("halted by a person: %+v", h)
	}
	r.Annotations[addonsv1.RolloutRejectedAnnotation] = "INC-4711"
	is := marked(rollout.Decision{Mode: rollout.Returning}, waves, "", now)
	if rollout.HaltOf(r) != nil || !is.Returns.Equal(now) {
		t.Errorf("a halt from before the rejection stays: %+v", rollout.HaltOf(r))
	}
	rollout.Begin(r, rollout.Back, false)
	if back := marked(rollout.Decision{Mode: rollout.SteppingBack, Begins: true}, waves, "", now); !back.Started.Equal(now) || back.Waves != nil {
		t.Errorf("a step back: %+v", back)
	}
	rollout.Begin(r, rollout.Edited, false)
	is = marked(rollout.Decision{Reject: true, Waves: []rollout.Count{{Name: "few"}}}, waves, "", now)
	if _, rejected := r.Annotations[addonsv1.RolloutRejectedAnnotation]; !rejected || !is.Returns.Equal(now) || rollout.HaltOf(r) != nil {
		t.Errorf("rejected: %+v, %v", is, r.Annotations)
	}
}

// A revision that becomes the newest one begins another attempt, unless it is the one that clusters are brought to.
func TestRenew(t *testing.T) {
	named := func(name string, number int64, attempt rollout.Attempt, annotations ...string) appsv1.ControllerRevision {
		attempt.Number = number
		r := revisionOf(number, &attempt, annotations...)
		r.Name = name
		return *r
	}
	completed := rollout.Attempt{Cause: rollout.Edited, Started: now, Completed: now}
	started := rollout.Attempt{Cause: rollout.Edited, Started: now}
	for name, tc := range map[string]struct {
		revisions []appsv1.ControllerRevision
		renew     int
		want      rollout.Attempt
	}{
		"a step back":                        {[]appsv1.ControllerRevision{named("b", 2, started), named("a", 1, completed)}, 1, rollout.Attempt{Number: 9, Cause: rollout.Back}},
		"what failed once more":              {[]appsv1.ControllerRevision{named("c", 3, completed), named("b", 2, started, addonsv1.RolloutRejectedAnnotation, addonsv1.RolloutApprovedAnnotation)}, 1, rollout.Attempt{Number: 9, Cause: rollout.Edited}},
		"the one that clusters go back from": {[]appsv1.ControllerRevision{named("b", 2, rollout.Attempt{Cause: rollout.Edited}, addonsv1.RolloutRejectedAnnotation), named("a", 1, started, addonsv1.RolloutRejectedAnnotation)}, 1, rollout.Attempt{Number: 9, Cause: rollout.Edited}},
		"the one under way":                  {[]appsv1.ControllerRevision{named("b", 2, rollout.Attempt{Cause: rollout.Edited}, addonsv1.RolloutRejectedAnnotation), named("a", 1, started)}, 1, rollout.Attempt{Number: 9, Cause: rollout.Edited, Started: now}},
	} {
		r := tc.revisions[tc.renew].DeepCopy()
		rollout.Renew(tc.revisions, r, 9, true, true)
		if got := rollout.AttemptOf(r); r.Revision != 9 || got.Cause != tc.want.Cause || !got.Started.Equal(tc.want.Started) || len(r.Annotations) != 1 {
			t.Errorf("%s: %+v, %v", name, got, r.Annotations)
		}
	}
	r := named("a", 1, rollout.Attempt{Cause: rollout.Edited, Started: now, Returns: now}, addonsv1.RolloutRejectedAnnotation, addonsv1.RolloutApprovedAnnotation)
	rollout.EndStages(&r)
	if is := rollout.AttemptOf(&r); !is.Unstaged || !is.Started.IsZero() || !is.Returns.IsZero() || len(r.Annotations) != 1 {
		t.Errorf("without a rollout: %+v, %v", is, r.Annotations)
	}
}

// An attempt that hasn't begun knows nothing of marks that are there already.
func TestAim(t *testing.T) {
	all := []string{addonsv1.RolloutApprovedAnnotation, addonsv1.RolloutPromotedAnnotation, addonsv1.RolloutHaltedAnnotation}
	var before, after rollout.Input
	before.Aim([]appsv1.ControllerRevision{*revisionOf(2, &rollout.Attempt{Number: 1, Cause: rollout.Edited, Started: now}, all...)}, 0, "")
	if len(before.Approved)+len(before.Promoted) > 0 || before.Halted != nil || !before.Began.IsZero() {
		t.Errorf("%+v", before)
	}
	after.Aim([]appsv1.ControllerRevision{*revisionOf(2, &rollout.Attempt{Number: 2, Cause: rollout.Edited, Started: now}, all...)}, 0, "")
	if len(after.Approved) != 1 || len(after.Promoted) != 1 || after.Halted == nil || !after.Began.Equal(now) {
		t.Errorf("%+v", after)
	}
}

// A cluster goes back to the revision that it was ready at, and was ready there if that fails now.
func TestLeave(t *testing.T) {
	for name, tc := range map[string]struct {
		left     addonsv1.StackStatus
		next     string
		ready    bool
		previous string
	}{
		"it was ready":            {addonsv1.StackStatus{Revision: "b", State: ready, Previous: "a"}, "c", true, "b"},
		"it had failed":           {addonsv1.StackStatus{Revision: "b", State: isFailed, Previous: "a"}, "c", false, "a"},
		"it goes back":            {addonsv1.StackStatus{Revision: "b", State: isFailed, Previous: "a"}, "a", true, ""},
		"it goes back from ready": {addonsv1.StackStatus{Revision: "b", State: ready, Previous: "a"}, "a", true, ""},
		"it hadn't come far":      {addonsv1.StackStatus{Revision: "b", State: progressing, Previous: "a", WasReady: new(true)}, "c", true, "a"},
	} {
		wasReady, previous := rollout.Leave(tc.left, tc.next)
		if wasReady == nil || *wasReady != tc.ready || previous != tc.previous {
			t.Errorf("%s: was ready %v, %q", name, wasReady, previous)
		}
	}
}
