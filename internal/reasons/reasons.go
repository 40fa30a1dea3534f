// SPDX-License-Identifier: Apache-2.0

// Package reasons is the one place that says what follows from the reason of an add-on
// in status.addons of a ClusterAddon.
package reasons

import (
	"cmp"
	"regexp"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Reasons beside those of the packages failure, render and deliver. They are stable API.
// The [Table] says what each means.
const (
	ReleaseTaken              = "ReleaseTaken"
	WaitingForDependency      = "WaitingForDependency"
	WaitingForPrecondition    = "WaitingForPrecondition"
	WaitingForDependent       = "WaitingForDependent"
	WaitingForSuccessor       = "WaitingForSuccessor"
	WaitingForControlPlane    = "WaitingForControlPlane"
	WaitingForWorkers         = "WaitingForWorkers"
	WaitingForUpgrade         = "WaitingForUpgrade"
	WaitingForConfirmation    = "WaitingForConfirmation"
	WaitingForOtherClusters   = "WaitingForOtherClusters"
	StackPaused               = "StackPaused"
	StackUndecided            = "StackUndecided"
	StackUnknown              = "StackUnknown"
	Retrying                  = "Retrying"
	ResponseTooLarge          = "ResponseTooLarge"
	TooManyKinds              = "TooManyKinds"
	RecordLost                = "RecordLost"
	NoCompatibleVersion       = "NoCompatibleVersion"
	ServiceAccountRequired    = "ServiceAccountRequired"
	ValuesNotFound            = "ValuesNotFound"
	ProviderObjectUnavailable = "ProviderObjectUnavailable"
	ProviderObjectRefused     = "ProviderObjectRefused"
)

// Reason is a row of the [Table]: what follows from a reason.
type Reason struct {
	Name string
	// Phases are those of an add-on with the reason; none are listed if it may be any. The
	// first is that of an add-on whose inputs can't be had, unless the error says to wait.
	Phases []addonsv1.AddonPhase
	Traits Trait
	// Meaning is what people read of it, with the way out.
	Meaning string
}

// Trait is something that is so of several reasons.
type Trait uint8

const (
	// Passing reasons go away by themselves: nobody is told of an add-on that is Pending.
	Passing Trait = 1 << iota
	// Retried reasons are tried again with backoff: no event tells when they are over.
	Retried
	// SourceFailed reasons are of a source that doesn't give what is wanted. An add-on that
	// is installed as wanted stays Ready.
	SourceFailed
	// SourceRefused reasons are of a source that is refused, or of what it gave.
	SourceRefused
	// SourceRead reasons are of something else, and tell that the source was read.
	SourceRead
)

// SourceBad reasons are those for which the source is to blame.
const SourceBad = SourceFailed | SourceRefused

// Of returns the row of a reason. An empty reason passes; nothing is known of an unknown one.
func Of(name string) Reason {
	if name == "" {
		return Reason{Traits: Passing}
	}
	return byName[name]
}

var byName = func() map[string]Reason {
	rows, meaning := make(map[string]Reason, len(Table)), ""
	for _, row := range Table {
		meaning = cmp.Or(row.Meaning, meaning)
		row.Meaning = meaning
		rows[row.Name] = row
	}
	return rows
}()

// Is reports whether the reason has one of the traits.
func (r Reason) Is(traits Trait) bool { return r.Traits&traits != 0 }

// Phase returns the phase of an add-on that can't go on for the reason.
func (r Reason) Phase() addonsv1.AddonPhase {
	if len(r.Phases) == 0 {
		return addonsv1.AddonFailed
	}
	return r.Phases[0]
}

// Stalls reports whether an add-on that is in the phase for the reason needs a person to act. It failed, or its source has
// answered that it doesn't give what is wanted. It is still tried again, and goes on by itself afterwards.
func (r Reason) Stalls(phase addonsv1.AddonPhase) bool {
	return phase == addonsv1.AddonFailed || phase == addonsv1.AddonPending && r.Is(SourceBad) && !r.Is(Passing)
}

// Warns reports whether a Warning tells of an add-on that comes into the phase for the reason.
func (r Reason) Warns(phase addonsv1.AddonPhase) bool {
	switch phase {
	case addonsv1.AddonFailed, addonsv1.AddonDegraded: // with Retrying it failed before, and its cluster doesn't answer
		return r.Name != Retrying
	case addonsv1.AddonPending:
		return !r.Is(Passing)
	}
	return phase == addonsv1.AddonUnassigned
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Meaning returns what a reason means, with the way out, as the [Table] has it but without Markdown; "" for a reason that
// isn't there.
func Meaning(name string) string {
	return strings.ReplaceAll(link.ReplaceAllString(byName[name].Meaning, "$1"), "`", "")
}
