// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

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
