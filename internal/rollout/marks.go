// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// CauseEdited and CauseFollowed are the values of the annotation rollout-cause: an edit brought the revision, or none did. A
// revision that was made without a rollout has no such annotation.
const (
	CauseEdited   = "Edited"
	CauseFollowed = "Followed"
)

// Revisions returns revisions by their marks.
//
// A stack may have run without a rollout before. Then no revision has marks, and those without a cause reached all clusters
// at once. The newest of these counts as completed, but for the newest revision of all.
func Revisions(revisions []appsv1.ControllerRevision) []Revision {
	all := make([]Revision, 0, len(revisions))
	marked, unstaged := false, 0
	for i := range revisions {
		has := func(annotation string) bool { _, found := revisions[i].Annotations[annotation]; return found }
		r := Revision{
			Name:      revisions[i].Name,
			Followed:  revisions[i].Annotations[addonsv1.RolloutCauseAnnotation] == CauseFollowed,
			Started:   has(addonsv1.RolloutStartedAnnotation),
			Completed: has(addonsv1.RolloutCompletedAnnotation),
			Rejected:  has(addonsv1.RolloutRejectedAnnotation),
			Replaced:  has(addonsv1.RolloutInputsReplacedAnnotation),
		}
		marked = marked || r.Started || r.Completed
		if unstaged == 0 && !has(addonsv1.RolloutCauseAnnotation) {
			unstaged = i
		}
		all = append(all, r)
	}
	if !marked && unstaged > 0 {
		all[unstaged].Completed = true
	}
	return all
}

// Began returns when the first cluster was brought to a revision, zero if none was.
func Began(revision *appsv1.ControllerRevision) time.Time {
	began, err := time.Parse(time.RFC3339, revision.Annotations[addonsv1.RolloutStartedAnnotation])
	if err != nil {
		return time.Time{} // somebody else wrote it
	}
	return began
}

// Approved returns the waves of a revision that somebody approved.
func Approved(revision *appsv1.ControllerRevision) sets.Set[string] {
	return Names(revision.Annotations[addonsv1.RolloutApprovedAnnotation])
}

// Held returns the names of the stacks whose rollouts a ClusterAddon is kept out of.
func Held(ca *addonsv1.ClusterAddon) sets.Set[string] {
	return Names(ca.Annotations[addonsv1.HoldRolloutAnnotation])
}

// IsHeld reports whether a ClusterAddon is kept out of the rollouts of a stack.
func IsHeld(ca *addonsv1.ClusterAddon, stack string) bool { return Held(ca).HasAny(All, stack) }

// Names returns the names in a list that commas separate.
func Names(list string) sets.Set[string] {
	all := sets.New[string]()
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all.Insert(name)
		}
	}
	return all
}

// Revision is a revision of a stack, by its marks.
type Revision struct {
	Name string
	// Followed says that it came by a newer version or input, and not by an edit.
	Followed bool
	// Started says that a cluster was brought to it, Completed that all were, and Rejected that none is to have it.
	Started, Completed, Rejected bool
	// Replaced says that values that it was made with aren't there any more: only a cluster that had it can go back to it.
	Replaced bool
}

// Target returns the index of the revision that clusters are to have, -1 for none. Revisions come the newest first.
//
// Once a newer revision is rejected, it is the newest completed one, if there is one. A revision that came by following
// waits for the end of the one that has started: else a fleet with long soaks would never get anything. An edit
// doesn't wait. Nothing waits for a revision that other clusters can't get any more.
func Target(revisions []Revision) int {
	newest := slices.IndexFunc(revisions, func(r Revision) bool { return !r.Rejected })
	if newest > 0 {
		if previous := Completed(revisions); previous >= 0 {
			return previous
		}
		newest = slices.IndexFunc(revisions, func(r Revision) bool { return !r.Rejected && !r.Replaced })
	}
	for i := newest; i >= 0 && i < len(revisions); i++ {
		switch r := revisions[i]; {
		case r.Completed:
			return newest
		case r.Started && !r.Rejected && !r.Replaced:
			return i
		case !r.Followed:
			return newest
		}
	}
	return newest
}

// Aim sets what revisions, the newest first, say of the target at an index, -1 for none.
func (in *Input) Aim(revisions []Revision, target int) {
	if target < 0 {
		return
	}
	in.Target, in.Known = revisions[target].Name, revisions[target].Completed
	for i, r := range revisions {
		in.Back = in.Back || i < target && r.Rejected && in.Known
		in.Awaited = in.Awaited || i < target && !r.Rejected
		in.HasPrevious = in.HasPrevious || i > target && r.Completed && !r.Rejected
	}
}

// Unfinished returns the names of revisions that were never completed, without the target.
func Unfinished(revisions []Revision, target int) sets.Set[string] {
	unfinished := sets.New[string]()
	for i, r := range revisions {
		if !r.Completed && i != target {
			unfinished.Insert(r.Name)
		}
	}
	return unfinished
}

// Completed returns the index of the newest completed revision that isn't rejected, -1 for none.
func Completed(revisions []Revision) int {
	return slices.IndexFunc(revisions, func(r Revision) bool { return r.Completed && !r.Rejected })
}
