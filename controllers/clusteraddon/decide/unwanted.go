// SPDX-License-Identifier: Apache-2.0

package decide

// Unwanted are the facts about an installed add-on that no stack of the cluster wants.
type Unwanted struct {
	// Ran says that the record is as this ClusterAddon wrote it: so it ran the add-on. After a restore nothing is proven.
	Ran bool
	// Removing says that the removal has begun: half of the add-on may be gone.
	Removing bool
	// Stack is the state of the stack that the record names, Known also if the stack isn't assigned.
	Stack StackState
	// Assigned says that the stack is assigned to the cluster.
	Assigned bool
	// OtherAwaited says that another stack may want the add-on.
	OtherAwaited bool
	// Passing says that the stack, or the other one that is awaited, hasn't been in this state for long.
	Passing bool
	// Paused says that the stack is, so that nothing is removed.
	Paused bool
	// TakenOver says that another management cluster continues with the release.
	TakenOver bool
	// RemovalHeld says that the removal of just this add-on waits for confirmation.
	RemovalHeld bool
	// LacksAccount says that the instance requires a ServiceAccount, and the record names none.
	LacksAccount bool
}

// Fate is what becomes of an unwanted add-on.
type Fate string

const (
	// Leaves says that the add-on is removed.
	Leaves Fate = "Leaves"
	// KeepsStatus leaves the add-on and its status as they are.
	KeepsStatus Fate = "KeepsStatus"
	// Unknown leaves an add-on that only its record knows.
	Unknown Fate = "Unknown"
	// StackUndecided leaves an add-on whose stack may still want it.
	StackUndecided Fate = "StackUndecided"
	// SuccessorUndecided leaves an add-on that another stack may want.
	SuccessorUndecided Fate = "SuccessorUndecided"
	// TakenOver leaves an add-on of another management cluster.
	TakenOver Fate = "TakenOver"
	// StackPaused leaves an add-on until its stack is resumed.
	StackPaused Fate = "StackPaused"
	// WithoutAccount leaves an add-on that can be removed only as a ServiceAccount.
	WithoutAccount Fate = "WithoutAccount"
)

// Fate returns what becomes of the add-on. When in doubt, it stays.
func (u Unwanted) Fate() Fate {
	isBegun := u.Ran && u.Removing && !u.Paused
	if !isBegun {
		if stays := u.whyStays(); stays != "" {
			return stays
		}
	}
	if u.LacksAccount {
		return WithoutAccount
	}
	return Leaves
}

// whyStays returns why the removal doesn't begin, "" if it does.
func (u Unwanted) whyStays() Fate {
	mayBeWanted := u.Stack != Known || u.OtherAwaited && !u.Assigned
	switch {
	case u.Stack != Known && !u.Ran:
		return Unknown
	case mayBeWanted && u.Ran && (u.Stack.KeepsStatus() || u.Passing):
		return KeepsStatus
	case u.Stack != Known:
		return StackUndecided
	case mayBeWanted && u.Ran:
		return SuccessorUndecided
	case u.TakenOver:
		return TakenOver
	case !u.Ran:
		return Unknown
	case u.RemovalHeld:
		return KeepsStatus
	case u.Paused:
		return StackPaused
	}
	return ""
}

// Answer is what the cluster says of the objects of an add-on that leaves.
type Answer int

const (
	// NotAsked says that nobody has asked yet.
	NotAsked Answer = iota
	// No wanted add-on may take over an object.
	No
	// Yes says that a wanted add-on may take over one.
	Yes
)

// Leaving are the facts about an add-on that is to be removed.
type Leaving struct {
	// UpgradeHolds says that the add-on stays until an upgrade of Kubernetes is done.
	UpgradeHolds bool
	// StackAwaited says that a stack of which nothing is known yet may want the add-on's objects.
	StackAwaited bool
	// Successor says whether a wanted add-on may take over objects.
	Successor Answer
	// DependentLeaves says that an add-on which depends on this one is removed first.
	DependentLeaves bool
	// DependentStays says that an add-on which depends on this one isn't removed.
	DependentStays bool
}

// LeavingStep is what is done with an add-on that is to be removed.
type LeavingStep string

const (
	// StayForUpgrade waits until the upgrade of Kubernetes is done.
	StayForUpgrade LeavingStep = "StayForUpgrade"
	// AwaitStack waits for a stack that may want the objects.
	AwaitStack LeavingStep = "AwaitStack"
	// FindSuccessors finds out whether a wanted add-on may take over objects.
	FindSuccessors LeavingStep = "FindSuccessors"
	// AwaitSuccessor waits until another add-on has taken over its objects.
	AwaitSuccessor LeavingStep = "AwaitSuccessor"
	// AwaitDependent waits until an add-on that depends on this one is removed.
	AwaitDependent LeavingStep = "AwaitDependent"
	// StayForDependent leaves the add-on, as another one depends on it and stays.
	StayForDependent LeavingStep = "StayForDependent"
	// Remove removes the add-on.
	Remove LeavingStep = "Remove"
)

// Step returns what is done with the add-on next.
func (l Leaving) Step() LeavingStep {
	switch {
	case l.UpgradeHolds:
		return StayForUpgrade
	case l.DependentLeaves:
		return AwaitDependent
	case l.DependentStays:
		return StayForDependent
	case l.StackAwaited:
		return AwaitStack
	case l.Successor == NotAsked:
		return FindSuccessors
	case l.Successor == Yes:
		return AwaitSuccessor
	}
	return Remove
}
