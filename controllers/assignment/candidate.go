// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// candidate is an AddonStack as it is in force: its newest revision. Selector and
// add-ons are of one spec then, also while an edit is invalid, or the stack paused.
type candidate struct {
	name     string
	spec     addonsv1.AddonStackSpec
	revision string // "" if there is none: then the spec is what is written now
	// lost says that the newest revision, as the stack's status names it, isn't there, or has fields that this program
	// doesn't know. Nobody knows then what is in force: an older one isn't.
	lost bool
	// revisions are the stack's, the newest first.
	revisions []appsv1.ControllerRevision
	// written is the spec as it is written now, if no revision keeps it yet; else nil.
	written *addonsv1.AddonStackSpec
	// steps are those of its rollout; nil if all clusters get a revision at once.
	steps *steps
}

// steps is what the rollout of a stack says of revisions.
type steps struct {
	// made is when the AddonStack was.
	made time.Time
	// completed is the index of the newest completed revision, -1 if there is none.
	completed int
	// replaced says that values that it was made with aren't there any more.
	replaced bool
	// hasTarget is false if all revisions are rejected, and none was completed.
	hasTarget bool
	// turns are the ClusterAddons that may be brought to the target now.
	turns sets.Set[string]
}

// find returns the candidate of a name, nil if there is none.
func find(candidates []candidate, name string) *candidate {
	for i := range candidates {
		if candidates[i].name == name {
			return &candidates[i]
		}
	}
	return nil
}

// at returns the stack in a revision, "" for none.
func (c *candidate) at(revision string) addonsv1.StackRevision {
	of := addonsv1.StackRevision{Name: c.name, Revision: revision, RemovalLimit: c.spec.RemovalLimit}
	if c.spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		of.DeletionPolicy = c.spec.DeletionPolicy
	}
	return of
}

func names(stacks []addonsv1.StackRevision, name string) bool {
	return stack.Assigned(stacks, name).Name != ""
}

// presencesAt returns when each add-on was there by a revision, as "namespace/name"; nil if that can't be told.
func (c *candidate) presencesAt(revision string) map[string]addonsv1.Present {
	spec := stack.SpecAt(c.revisions, revision)
	if spec == nil {
		return nil
	}
	return stack.Presences(spec.Addons)
}

// dropped returns the add-ons of a revision that the next one lacks, as "namespace/name", in no order.
func (c *candidate) dropped(previous, next string) []string {
	return sets.KeySet(c.presencesAt(previous)).Difference(sets.KeySet(c.presencesAt(next))).UnsortedList()
}

// hasOneOf reports whether the stack has one of the releases, as "namespace/name": maybe at other times.
func (c *candidate) hasOneOf(releases []string) bool {
	return sets.KeySet(stack.Presences(c.spec.Addons)).HasAny(releases...)
}

func stackKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
