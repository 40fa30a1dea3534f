// SPDX-License-Identifier: Apache-2.0

// Package decide says what is done with each add-on of a cluster, by what was gathered about it. Its functions are pure:
// they ask nobody, and remember nothing. Where a fact is missing that a request has to find out, they return a step that
// finds it out, and are asked again.
package decide

// StackState is how much is known of a stack that is assigned to a cluster.
type StackState int

const (
	// Known is the state of a stack whose revision says which add-ons it wants.
	Known StackState = iota
	// Undecided is the state of a stack that this instance sees, without a revision that can be read and selects the cluster.
	Undecided
	// Unseen is the state of a stack that this instance doesn't see, and that has yet to run on the cluster.
	Unseen
	// Foreign is the state of a stack that this instance doesn't see, and that has run on the cluster. It may have stayed
	// behind for good when the Cluster was handed over.
	Foreign
	// JustGone is the state of a stack that was there a moment ago, and may be made again.
	JustGone
	// Held is the state of a stack whose removal waits for confirmation, and that can't be read, as while its CRD is gone.
	Held
	// Deselected is the state of a stack whose removal waits for confirmation, and that doesn't select the cluster.
	Deselected
)

// KeepsReleases reports whether the add-ons that the stack installed are its own, also where another stack wants them.
func (s StackState) KeepsReleases() bool {
	return s == Undecided || s == JustGone || s == Held || s == Deselected
}

// IsAwaited reports whether the stack may want add-ons that no other stack wants any more.
func (s StackState) IsAwaited() bool { return s == Undecided || s == Unseen || s == JustGone }

// MayTakeOver reports whether the stack may want objects of an add-on that leaves. It is waited for, though not for ever.
func (s StackState) MayTakeOver() bool { return s.IsAwaited() || s == Held }

// KeepsStatus reports whether the statuses of the stack's add-ons stay as they are.
func (s StackState) KeepsStatus() bool { return s == JustGone || s == Held || s == Deselected }
