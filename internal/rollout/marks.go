// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// CauseFollowed is the value of the annotation rollout-cause for a revision that no edit brought.
const CauseFollowed = "Followed"

// Revisions returns revisions by their marks.
//
// A stack may have run without a rollout before. Then no revision has marks, and each one reached all clusters at once:
// the revision before the newest one counts as completed.
func Revisions(revisions []appsv1.ControllerRevision) []Revision {
	all := make([]Revision, 0, len(revisions))
	marked := false
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
		all = append(all, r)
	}
	if !marked && len(all) > 1 {
		all[1].Completed = true
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
