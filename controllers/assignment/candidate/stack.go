// SPDX-License-Identifier: Apache-2.0

// Package candidate decides which revisions of a namespace's AddonStacks a cluster is to have. It only computes.
package candidate

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Stack is an AddonStack as it is in force: its newest revision. Selector and
// add-ons are of one spec then, also while an edit is invalid, or the stack paused. Policies are as they are written now.
type Stack struct {
	Name     string
	Paused   bool
	Spec     addonsv1.AddonStackSpec
	Revision string // "" if there is none: then the spec is what is written now
	// Lost says that the newest revision, as the stack's status names it, isn't there, or has fields that this program
	// doesn't know. It isn't known then what is in force: an older one isn't.
	Lost bool
	// keeps is the UID of the revision that Spec was read from, and unknown says that it has fields which this program doesn't know.
	keeps   types.UID
	unknown bool
	// Made is when the AddonStack was. IsNew says that it was a moment ago, and that its first revision is to come: to assign the
	// stack without one would change each of its clusters twice.
	Made  time.Time
	IsNew bool
	// Revisions are the stack's, the newest first.
	Revisions []appsv1.ControllerRevision
	// Written is the spec as it is written now, if no revision keeps it yet; else nil.
	Written *addonsv1.AddonStackSpec
	// Steps are those of its rollout; nil if all clusters get a revision at once.
	Steps *Steps
	// Generation is the AddonStack's.
	Generation int64
}

// Steps is the state of a stack's rollout.
type Steps struct {
	// Made is when the AddonStack was.
	Made time.Time
	// Marked are the stack's revisions by their marks, the newest first, and Target is the index of the one that the rollout
	// is of, -1 if there is none.
	Marked []rollout.Revision
	Target int
	// Turns are the ClusterAddons that may be brought to the target now, or away from it if it is rejected.
	Turns sets.Set[string]
	Now   time.Time
}

// Find returns the stack of a name, nil if there is none.
func Find(candidates []Stack, name string) *Stack {
	for i := range candidates {
		if candidates[i].Name == name {
			return &candidates[i]
		}
	}
	return nil
}

// At returns the assignment of the stack at a revision, "" for none.
func (c *Stack) At(revision string) addonsv1.StackRevision {
	of := addonsv1.StackRevision{Name: c.Name, Revision: revision, RemovalLimit: c.Spec.RemovalLimit}
	if c.Spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		of.DeletionPolicy = c.Spec.DeletionPolicy
	}
	if c.Paused {
		of.Paused = &c.Paused
	}
	return of
}

// Written returns the assignment of an AddonStack as it is written, without a revision.
func Written(s *addonsv1.AddonStack) addonsv1.StackRevision {
	return (&Stack{Name: s.Name, Spec: s.Spec, Paused: annotations.HasPaused(s)}).At("")
}

// Proposed returns the stack as it would be with a revision of this spec in force, which every cluster gets at once.
func (c *Stack) Proposed(revision string, spec *addonsv1.AddonStackSpec) Stack {
	return Stack{Name: c.Name, Spec: *spec, Revision: revision, Revisions: c.Revisions, Generation: c.Generation}
}

// Version returns another text when the stack is written, or gets another revision.
func (c *Stack) Version() string { return fmt.Sprint(c.Generation, c.Revision, c.newest()) }

// presencesAt returns when each add-on was there by a revision, as "namespace/name"; nil if that can't be told.
func (c *Stack) presencesAt(revision string) map[string]addonsv1.Present {
	spec := stack.SpecAt(c.Revisions, revision)
	if spec == nil {
		return nil
	}
	return stack.Presences(spec.Addons)
}

// ReleasesAt returns the add-ons of a revision, as "namespace/name".
func (c *Stack) ReleasesAt(revision string) sets.Set[string] {
	return sets.KeySet(c.presencesAt(revision))
}

// HasOneOf reports whether the stack has one of the releases, as "namespace/name": maybe at other times.
func (c *Stack) HasOneOf(releases []string) bool {
	return sets.KeySet(stack.Presences(c.Spec.Addons)).HasAny(releases...)
}
