// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Revision is a revision of a stack, by the marks of its attempt.
type Revision struct {
	Name  string
	Cause Cause
	// Unstaged says that all clusters got it at once.
	Unstaged bool
	// Started says that a cluster was brought to it, and Completed that all were seen Ready at it. If it is Rejected, no
	// cluster is to have it; if it is Halted, no other one is.
	Started, Completed, Rejected, Halted bool
	// Replaced says that values that it was made with aren't there any more: only a cluster that had it can go back to it.
	Replaced bool
}

// Revisions returns revisions by their marks. A mark that isn't of the present attempt doesn't count.
func Revisions(revisions []appsv1.ControllerRevision) []Revision {
	all := make([]Revision, 0, len(revisions))
	for i := range revisions {
		has := func(annotation string) bool { _, found := revisions[i].Annotations[annotation]; return found }
		is := AttemptOf(&revisions[i])
		begun := is.Cause != ""
		all = append(all, Revision{
			Name:      revisions[i].Name,
			Cause:     is.Cause,
			Unstaged:  is.Unstaged,
			Started:   is.Unstaged || !is.Started.IsZero(),
			Completed: !is.Completed.IsZero(),
			Rejected:  begun && has(addonsv1.RolloutRejectedAnnotation),
			Halted:    begun && has(addonsv1.RolloutHaltedAnnotation),
			Replaced:  has(addonsv1.RolloutInputsReplacedAnnotation),
		})
	}
	return all
}

// Held returns the names of the stacks whose changes a ClusterAddon is kept out of.
func Held(ca *addonsv1.ClusterAddon) sets.Set[string] {
	return Names(ca.Annotations[addonsv1.HoldRolloutAnnotation])
}

// IsHeld reports whether a ClusterAddon is kept out of the changes of a stack.
func IsHeld(ca *addonsv1.ClusterAddon, stack string) bool { return Held(ca).HasAny(All, stack) }

// Approved returns the waves of a revision that somebody approved.
func Approved(revision *appsv1.ControllerRevision) sets.Set[string] {
	return Names(revision.Annotations[addonsv1.RolloutApprovedAnnotation])
}

// Promoted returns the waves of a revision that are over without a proof.
func Promoted(revision *appsv1.ControllerRevision) sets.Set[string] {
	return Names(revision.Annotations[addonsv1.RolloutPromotedAnnotation])
}

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

// Target returns the index of the revision that the rollout is of, -1 for none. Revisions come the newest first. If the
// target is rejected, the rollout brings clusters back from it.
//
// A revision that is rejected before a cluster had it changes nothing. A revision that came by following waits for the end
// of the one that has started: else a fleet with long soaks would never get anything. An edit doesn't wait. Nothing waits
// for a revision that is halted, or that other clusters can't get any more.
func Target(revisions []Revision) int {
	newest := slices.IndexFunc(revisions, func(r Revision) bool { return !r.Rejected || r.Started })
	for i := newest; i >= 0 && i < len(revisions); i++ {
		switch r := revisions[i]; {
		case i == newest && r.Rejected, r.Completed:
			return newest
		case r.Started && !r.Rejected && !r.Halted && !r.Replaced:
			return i
		case r.Cause != Followed:
			return newest
		}
	}
	return newest
}

// Previous returns the index of the revision that was completed last before another one, -1 for none. A step back has
// none: only one step is quick.
func Previous(revisions []Revision, of int) int {
	if of < 0 || revisions[of].Cause == Back {
		return -1
	}
	for i := of + 1; i < len(revisions); i++ {
		if r := revisions[i]; !r.Rejected && (r.Completed || r.Cause == Back) {
			return i
		}
	}
	return -1
}

// Entry returns the index of the revision that a cluster which joins is to have, -1 if it waits for the target.
func Entry(revisions []Revision, target int) int {
	if target >= 0 && !revisions[target].Rejected && (revisions[target].Completed || revisions[target].Cause == Back) {
		return target
	}
	return Previous(revisions, target)
}

// CauseOf returns how a revision becomes the newest one, after these: edited says that an edit brings it.
func CauseOf(revisions []Revision, name string, edited bool) Cause {
	if previous := Previous(revisions, Target(revisions)); previous >= 0 && revisions[previous].Name == name {
		return Back
	}
	if edited {
		return Edited
	}
	return Followed
}

// GoesBackTo returns the revision that a cluster with the target has to have once that is rejected, "" if none is known. It is
// the one that the stack was Ready at last on the cluster, by its status.
func GoesBackTo(revisions []Revision, target int, is addonsv1.StackStatus) string {
	before := is.Previous
	if is.Revision != revisions[target].Name {
		before = is.Revision // it hasn't begun with the target
	}
	at := slices.IndexFunc(revisions, func(r Revision) bool { return r.Name == before && !r.Rejected })
	if at < 0 {
		at = Previous(revisions, target)
	}
	if at < 0 || at == target {
		return ""
	}
	return revisions[at].Name
}

// Aim sets what revisions, the newest first, say of the target at an index, -1 for none, to an instance with a watch filter.
func (in *Input) Aim(revisions []appsv1.ControllerRevision, target int, watchFilter string) {
	if target < 0 {
		return
	}
	marked, revision := Revisions(revisions[:target+1]), &revisions[target]
	is, attempt := marked[target], AttemptOf(revision)
	in.Target = is.Name
	in.Began, in.Returned = attempt.Started, attempt.Returns
	in.Last, in.Over = attempt.Instances[watchFilter].Last, sets.New(attempt.Instances[watchFilter].Over...)
	in.WatchFilter, in.Elsewhere = watchFilter, in.elsewhere(attempt)
	if is.Cause != "" {
		in.Halted, in.Approved, in.Promoted = HaltOf(revision), Approved(revision), Promoted(revision)
	}
	switch {
	case is.Rejected:
		in.Mode = Returning
	case is.Completed:
		in.Mode = Following
	case is.Unstaged:
		in.Mode = AllAtOnce
	case is.Cause == Back:
		in.Mode = SteppingBack
	}
	in.Replaced = is.Replaced && in.Mode != Returning && target > 0
}

// Unfinished returns the names of revisions that weren't completed, without the target.
func Unfinished(revisions []Revision, target int) sets.Set[string] {
	unfinished := sets.New[string]()
	for i, r := range revisions {
		if !r.Completed && i != target {
			unfinished.Insert(r.Name)
		}
	}
	return unfinished
}
