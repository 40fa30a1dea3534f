// SPDX-License-Identifier: Apache-2.0

package decide

// Comparison is how the inputs of a wanted add-on differ from those of its release record.
type Comparison int

const (
	// NotCompared says that nobody has compared them yet.
	NotCompared Comparison = iota
	// Different inputs want an installation or an upgrade.
	Different
	// Same inputs want nothing.
	Same
	// Unreadable inputs can't be had now, as when a source is down.
	Unreadable
	// Replaced inputs are values that aren't those of the stack's revision any more.
	Replaced
)

// Check is the result of a CEL expression over objects of the cluster.
type Check int

const (
	// NotChecked says that nobody has evaluated it yet.
	NotChecked Check = iota
	// True lets the add-on go on.
	True
	// False has the add-on wait.
	False
	// Failed says that the objects couldn't be read.
	Failed
)

// Wanted are the facts about an add-on that a cluster is to have.
type Wanted struct {
	// Unreachable says that the cluster doesn't answer any more in this reconcile.
	Unreachable bool
	// Outdated says that the stack's revision doesn't select the cluster any more, and the assignment doesn't follow yet.
	Outdated bool
	// Taken says that the release belongs to an add-on of another stack.
	Taken bool
	// LacksAccount says that the instance requires a ServiceAccount, and the stack names none.
	LacksAccount bool
	// Incompatible says that no version of the chart is for the cluster's Kubernetes.
	Incompatible bool

	Comparison Comparison
	// Installed says that there is a release record; AsWanted says that it is deployed, of the same spec, and proven.
	Installed, AsWanted bool
	// Postcondition is that of an add-on with the same inputs.
	Postcondition Check

	// Paused says that the stack is, so that nothing is installed or changed.
	Paused bool
	// HeldBack says that the change waits for a point of an upgrade of Kubernetes.
	HeldBack bool
	// RemovalHeld says that the removal of other add-ons of the stack waits for confirmation.
	RemovalHeld bool
	// DependencyMissing says that an add-on of dependsOn isn't ready.
	DependencyMissing bool
	Precondition      Check
	// RecordLost says that the record of an installation was gone lately, and the next installation waits.
	RecordLost bool
}

// WantedStep is what is done with a wanted add-on.
type WantedStep string

const (
	// KeepWanted leaves the add-on and its status as they are.
	KeepWanted WantedStep = "Keep"
	// RefuseTaken reports that another stack has the release.
	RefuseTaken WantedStep = "RefuseTaken"
	// RefuseAccount reports that the stack has to name a ServiceAccount.
	RefuseAccount WantedStep = "RefuseAccount"
	// RefuseVersion reports that no version is for the cluster's Kubernetes.
	RefuseVersion WantedStep = "RefuseVersion"
	// Compare resolves the inputs and compares them with those of the record.
	Compare WantedStep = "Compare"
	// ReportUnreadable reports why the inputs can't be had.
	ReportUnreadable WantedStep = "ReportUnreadable"
	// ReportReplaced reports that values were replaced, of an add-on that isn't installed.
	ReportReplaced WantedStep = "ReportReplaced"
	// KeepReplaced reports that values were replaced, of an add-on that is Ready all the same.
	KeepReplaced WantedStep = "KeepReplaced"
	// AwaitPostcondition waits until the installed add-on's own check is true.
	AwaitPostcondition WantedStep = "AwaitPostcondition"
	// Settle reports that the add-on is installed as wanted.
	Settle WantedStep = "Settle"
	// AwaitResume waits until the stack is resumed.
	AwaitResume WantedStep = "AwaitResume"
	// AwaitUpgrade waits for a point of an upgrade of Kubernetes.
	AwaitUpgrade WantedStep = "AwaitUpgrade"
	// AwaitConfirmation waits until a removal is confirmed or undone.
	AwaitConfirmation WantedStep = "AwaitConfirmation"
	// AwaitDependency waits for an add-on of dependsOn.
	AwaitDependency WantedStep = "AwaitDependency"
	// CheckPrecondition evaluates the add-on's precondition.
	CheckPrecondition WantedStep = "CheckPrecondition"
	// AwaitPrecondition waits until the precondition is true.
	AwaitPrecondition WantedStep = "AwaitPrecondition"
	// RetryPrecondition evaluates the precondition again later, as a request failed.
	RetryPrecondition WantedStep = "RetryPrecondition"
	// AwaitRecord waits before an add-on is installed again whose records don't stay.
	AwaitRecord WantedStep = "AwaitRecord"
	// Deliver installs or upgrades the add-on.
	Deliver WantedStep = "Deliver"
	// GoBack delivers an earlier record that has the values of the stack's revision.
	GoBack WantedStep = "GoBack"
)

// Step returns what is done with the add-on next.
func (w Wanted) Step() WantedStep {
	switch {
	case w.Unreachable, w.Outdated:
		return KeepWanted
	case w.Taken:
		return RefuseTaken
	case w.LacksAccount:
		return RefuseAccount
	case w.Incompatible:
		return RefuseVersion
	}
	switch w.Comparison {
	case NotCompared:
		return Compare
	case Unreadable:
		return ReportUnreadable
	case Same:
		if w.Postcondition == False {
			return AwaitPostcondition
		}
		return Settle
	case Replaced:
		switch {
		case w.AsWanted:
			return KeepReplaced
		case !w.Installed:
			return ReportReplaced
		}
		return w.change(GoBack)
	case Different:
	}
	return w.change(Deliver)
}

// change returns what a change of the add-on waits for, or the change.
func (w Wanted) change(change WantedStep) WantedStep {
	switch {
	case w.Paused:
		return AwaitResume
	case w.HeldBack:
		return AwaitUpgrade
	case w.RemovalHeld && !w.Installed: // it may come in the place of the add-on that is to be removed
		return AwaitConfirmation
	case w.DependencyMissing:
		return AwaitDependency
	}
	switch w.Precondition {
	case NotChecked:
		return CheckPrecondition
	case False:
		return AwaitPrecondition
	case Failed:
		return RetryPrecondition
	case True:
	}
	if w.RecordLost && !w.Installed {
		return AwaitRecord
	}
	return change
}
