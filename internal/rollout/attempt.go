// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Cause says how a revision became the newest one.
type Cause string

const (
	// Edited is an edit of the AddonStack.
	Edited Cause = "Edited"
	// Followed is a newer version, or other values.
	Followed Cause = "Followed"
	// Back is a step back to the revision that was completed last before.
	Back Cause = "Back"
)

// Attempt is one attempt to bring clusters to a revision. It is the annotation rollout-attempt of the ControllerRevision, as
// JSON. It ends with the ControllerRevision's number: a revision that the stack goes back to gets another one.
type Attempt struct {
	Number int64 `json:"number"`
	Cause  Cause `json:"cause,omitempty"`
	// Unstaged says that the attempt had a time without spec.rollout: all clusters got the revision at once.
	Unstaged bool `json:"unstaged,omitempty"`
	// Started is when the first cluster was brought to the revision, zero if none was. From then on, Waves are those of
	// spec.rollout at that time, each with its soak.
	Started time.Time              `json:"started,omitzero"`
	Waves   []addonsv1.RolloutWave `json:"waves,omitempty"`
	// Instances is how far each instance is with its clusters, by its watch filter, "" for none.
	Instances map[string]Progress `json:"instances,omitempty"`
	// Returns is since when clusters go back, as the revision was rejected; zero if it isn't.
	Returns time.Time `json:"returns,omitzero"`
	// Completed is when all clusters were seen Ready for long enough; zero if they weren't.
	Completed time.Time `json:"completed,omitzero"`
}

// Progress is how far an instance is with its clusters.
type Progress struct {
	// Last has the place of the last cluster of each wave of a size, by the name of the wave.
	Last map[string]uint64 `json:"last,omitempty"`
	// Over are the names of the waves that are over.
	Over []string `json:"over,omitempty"`
	// OnTheWay is how many clusters were on their way at the last decision, which counts for other instances until all of them
	// have arrived or failed. Waves counts the clusters of each wave. An instance without others beside it notes neither.
	OnTheWay int              `json:"onTheWay,omitempty"`
	Until    time.Time        `json:"until,omitzero"`
	Waves    map[string]Share `json:"waves,omitempty"`
}

// Halt says why a rollout is halted. It is the annotation rollout-halted, as JSON.
type Halt struct {
	// Wave in which more clusters failed than may, and how many did.
	Wave   string `json:"wave"`
	Failed int    `json:"failed"`
}

// AttemptOf returns the attempt that a revision is in. If its annotation isn't there, or is of another attempt, the attempt
// hasn't begun: nothing is known but its number.
func AttemptOf(revision *appsv1.ControllerRevision) Attempt {
	known := Attempt{}
	if json.Unmarshal([]byte(revision.Annotations[addonsv1.RolloutAttemptAnnotation]), &known) != nil || !known.isOf(revision) {
		return Attempt{Number: revision.Revision}
	}
	return known
}

// isOf reports whether the attempt is of a revision as it is now. An attempt whose rejection was taken back is over.
func (a *Attempt) isOf(revision *appsv1.ControllerRevision) bool {
	_, rejected := revision.Annotations[addonsv1.RolloutRejectedAnnotation]
	return a.Number == revision.Revision && (rejected || a.Returns.IsZero())
}

// Begin has an attempt begin: a revision has its annotation, and no marks of the one before.
func Begin(revision *appsv1.ControllerRevision, cause Cause, unstaged bool) {
	for _, mark := range []string{addonsv1.RolloutHaltedAnnotation, addonsv1.RolloutRejectedAnnotation, addonsv1.RolloutApprovedAnnotation, addonsv1.RolloutPromotedAnnotation} {
		delete(revision.Annotations, mark)
	}
	(&Attempt{Number: revision.Revision, Cause: cause, Unstaged: unstaged}).Note(revision)
}

// Renew has a revision become the newest one of these, with a number: edited says that an edit brings it, and staged that
// there is a rollout. Another attempt begins, unless the rollout is of this revision already.
func Renew(revisions []appsv1.ControllerRevision, known *appsv1.ControllerRevision, number int64, edited, staged bool) {
	marked, attempt := Revisions(revisions), AttemptOf(known)
	target := Target(marked)
	known.Revision = number
	if target >= 0 && marked[target].Name == known.Name && !marked[target].Rejected && attempt.Cause != "" {
		attempt.Number = number
		attempt.Note(known)
		return
	}
	Begin(known, CauseOf(marked, known.Name, edited), !staged)
}

// EndStages has all clusters get a revision at once, as the stack has no rollout any more. Nothing is left of its rollout.
func EndStages(revision *appsv1.ControllerRevision) {
	attempt := AttemptOf(revision)
	Begin(revision, cmp.Or(attempt.Cause, Edited), true)
	(&Attempt{Number: revision.Revision, Cause: cmp.Or(attempt.Cause, Edited), Unstaged: true, Completed: attempt.Completed}).Note(revision)
}

// Note writes the attempt into the annotation of its revision.
func (a *Attempt) Note(revision *appsv1.ControllerRevision) {
	text, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("an attempt of plain values has no JSON: %v", err)) // of a year beyond 9999
	}
	metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.RolloutAttemptAnnotation, string(text))
}

// HaltOf returns why the rollout of a revision is halted, nil if it isn't.
func HaltOf(revision *appsv1.ControllerRevision) *Halt {
	text, halted := revision.Annotations[addonsv1.RolloutHaltedAnnotation]
	if !halted {
		return nil
	}
	is := &Halt{}
	_ = json.Unmarshal([]byte(text), is) // a person may have halted it, with words
	return is
}

// note writes the halt into the annotation of a revision.
func (h *Halt) note(revision *appsv1.ControllerRevision) {
	text, _ := json.Marshal(h) // it has a name and a number
	metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.RolloutHaltedAnnotation, string(text))
}

// Mark writes what a decision on a revision means for later ones into its annotations. Waves are those of spec.rollout, and
// the watch filter is the instance's.
func Mark(revision *appsv1.ControllerRevision, d Decision, waves []addonsv1.RolloutWave, watchFilter string, now time.Time) {
	before := AttemptOf(revision)
	after := before.after(d, waves, watchFilter, now)
	if !reflect.DeepEqual(before, after) { // else programs of two versions would write to and fro
		after.Note(revision)
	}
	switch {
	case d.Reject:
		metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.RolloutRejectedAnnotation, d.Failure())
		delete(revision.Annotations, addonsv1.RolloutHaltedAnnotation)
	case d.Resume, d.Mode == Returning && before.Returns.IsZero():
		delete(revision.Annotations, addonsv1.RolloutHaltedAnnotation)
	case d.Halt != nil:
		d.Halt.note(revision)
	}
}

// after returns the attempt with what a decision adds to it.
func (a Attempt) after(d Decision, waves []addonsv1.RolloutWave, watchFilter string, now time.Time) Attempt {
	now = now.UTC().Truncate(time.Second)
	if d.Reject || d.Mode == Returning {
		a.Returns = earliest(a.Returns, now)
	}
	if d.Completed {
		a.Completed = earliest(a.Completed, now)
	}
	isBegun := !a.Started.IsZero()
	if !isBegun && d.Begins && (d.Mode == Staged || d.Mode == SteppingBack) {
		a.Started = now
	}
	if !d.Begins || d.Mode != Staged && d.Own == nil {
		return a
	}
	was, known := a.Instances[watchFilter]
	is := was
	if d.Mode == Staged {
		if !isBegun {
			a.Waves = waves
		}
		if !known {
			is.Last = d.Last
		}
		is.Over = sets.List(sets.New(is.Over...).Insert(d.Over...))
	}
	is.tell(d)
	if known && reflect.DeepEqual(was, is) {
		return a
	}
	a.Instances = maps.Clone(a.Instances)
	if a.Instances == nil {
		a.Instances = map[string]Progress{}
	}
	a.Instances[watchFilter] = is
	return a
}

func earliest(known, now time.Time) time.Time {
	if known.IsZero() {
		return now
	}
	return known
}
