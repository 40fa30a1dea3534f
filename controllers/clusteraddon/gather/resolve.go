// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/version"
)

// Unresolved is an assigned stack whose add-ons are unknown.
type Unresolved struct {
	State decide.StackState
	Why   string
	// IsNew says that it has been so for a moment only. Mostly it isn't any more in the next one.
	IsNew bool
}

// maxFields is how many fields that this program doesn't know a text names.
const maxFields = 3

// Stacks are what is known of all stacks that the cluster is to run.
type Stacks struct {
	Wanted     []wanted.Addon // each one after those it depends on
	Unresolved map[string]Unresolved
	// Paused are the stacks for which nothing is written to the cluster.
	Paused sets.Set[string]
	// HeldRemovals are those that wait for confirmation, as people are told of them.
	HeldRemovals []string
	// Returning are add-ons that a stack has again as it is written, and not yet as it is assigned, as "namespace/name". They stay until
	// the assignment has had time to follow.
	Returning sets.Set[string]
	// OutdatedSince says since when assignments don't follow, by stack.
	OutdatedSince map[string]time.Time
	// Outdated are the stacks for which an upgrade of Kubernetes waits until the assignment has had time to follow.
	Outdated []string
	// RecheckAfter is when one of them won't be given more time; zero if none is.
	RecheckAfter time.Duration
}

// Resolve decides what each stack wants. A stack without a readable revision is unresolved:
// its add-ons stay. So is one whose assignment is outdated for longer than AssignmentGrace.
func Resolve(all []Stack, cluster *member.Member, since map[string]time.Time, now time.Time) Stacks {
	s := Stacks{Unresolved: map[string]Unresolved{}, Paused: sets.New[string](), Returning: sets.New[string](), OutdatedSince: map[string]time.Time{}}
	isGiven := func(name string) bool { return s.isGiven(name, AssignmentGrace, since, now) }
	for i := range all {
		a := &all[i]
		if a.HeldRemoval != nil {
			s.HeldRemovals = append(s.HeldRemovals, stack.DescribeHeld(cluster.Namespace, &a.StackRevision))
		}
		if a.isPaused() {
			s.Paused.Insert(a.Name)
		}
		outdated := a.Spec != nil && deselects(a.Spec, cluster) && !a.isPaused() // a pause keeps the assignment
		switch {
		case a.HeldRemoval != nil && (a.Written == nil || a.Spec == nil || outdated):
			s.Unresolved[a.Name] = a.held(outdated && a.Written != nil)
		case a.Written == nil && a.Revision != "":
			s.Unresolved[a.Name] = Unresolved{State: decide.Foreign, Why: a.whyUnreadable()}
			if isGiven(a.Name) || a.Deleted && s.isGiven(a.Name, DeletionGrace, since, now) { // a revision may outlive its stack for a moment
				s.Unresolved[a.Name] = Unresolved{State: decide.JustGone, Why: a.whyUnreadable(), IsNew: true}
			}
		case a.Written == nil:
			s.Unresolved[a.Name] = Unresolved{State: decide.Unseen, Why: a.whyUnreadable(), IsNew: isGiven(a.Name)}
		case a.Spec == nil:
			s.Unresolved[a.Name] = Unresolved{State: decide.Undecided, Why: a.whyUnreadable(), IsNew: isGiven(a.Name)}
		case outdated && !isGiven(a.Name):
			s.Unresolved[a.Name] = Unresolved{State: decide.Undecided, Why: a.whyOutdated(cluster)}
		default:
			s.Wanted = append(s.Wanted, a.addons(outdated)...)
			s.awaitMore(a, isGiven)
		}
	}
	s.Wanted = stack.InOrder(s.Wanted,
		(*wanted.Addon).Qualified,
		func(a *wanted.Addon) []string { return stack.QualifiedAll(a.Stack, a.DependsOn) })
	return s
}

// held returns the state of a stack whose removal from the cluster is held.
func (a *Stack) held(isDeselected bool) Unresolved {
	is := Unresolved{State: decide.Held, Why: "The removal of its add-ons is held"}
	if isDeselected {
		is.State = decide.Deselected
	}
	return is
}

// isGiven reports whether the assignment of a stack is given more of its time to follow.
func (s *Stacks) isGiven(name string, grace time.Duration, since map[string]time.Time, now time.Time) bool {
	began, known := since[name]
	if !known {
		began = now
	}
	s.OutdatedSince[name] = began
	left := max(0, grace-now.Sub(began))
	s.RecheckAfter = retry.Sooner(s.RecheckAfter, left)
	return left > 0
}

// addons returns what the stack wants. An outdated revision doesn't select the Cluster any more, so
// its add-ons are left as they are. Policies are no content of the revision: Orphan counts as soon as anything says so.
func (a *Stack) addons(outdated bool) []wanted.Addon {
	spec := *a.Spec
	if spec.DeletionPolicy = a.DeletionPolicy; a.Written.Spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		spec.DeletionPolicy = a.Written.Spec.DeletionPolicy
	}
	all := make([]wanted.Addon, 0, len(a.Spec.Addons))
	for _, each := range a.Spec.Addons {
		all = append(all, wanted.Addon{
			Addon: each, Stack: a.Name, Spec: spec, Outdated: outdated, Paused: a.isPaused(), Rollout: a.Written.Spec.Rollout, Sources: each.ValuesFrom, Pinned: a.Pinned,
		})
	}
	return all
}

// awaitMore has add-ons stay that the stack has again.
func (s *Stacks) awaitMore(a *Stack, isGiven func(string) bool) {
	if more := a.more(); len(more) > 0 && isGiven(a.Name) {
		s.Returning = s.Returning.Union(more)
	}
}

// more returns the add-ons that the stack has as it is written, and not as it is assigned, as "namespace/name".
func (a *Stack) more() sets.Set[string] {
	if a.Generation >= a.Written.Generation || !a.Written.DeletionTimestamp.IsZero() {
		return nil
	}
	return sets.KeySet(stack.Presences(a.Written.Spec.Addons)).Difference(sets.KeySet(stack.Presences(a.Spec.Addons)))
}

// isPaused reports whether nothing is to be written to the cluster for the stack. The assignment may be behind.
func (a *Stack) isPaused() bool {
	return ptr.Deref(a.Paused, false) || a.Written != nil && annotations.HasPaused(a.Written)
}

func (a *Stack) whyUnreadable() string {
	if a.Written == nil {
		if a.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
			return fmt.Sprintf("AddonStack %s is gone, and its add-ons are to be left behind: the cluster is told that first", a.Name)
		}
		if a.Deleted {
			return fmt.Sprintf("AddonStack %s is gone, and still in spec.stacks of this ClusterAddon: see the log of the provider instance", a.Name)
		}
		return fmt.Sprintf("AddonStack %s has no valid revision that this instance can see: see the stack's watch label", a.Name)
	}
	if len(a.Unknown) > 0 {
		return fmt.Sprintf("AddonStack %s has %s, which version %s of the provider instance doesn't know: upgrade it",
			a.Name, message.List(a.Unknown, ", ", maxFields), version.Get())
	}
	if a.Revision != "" {
		return fmt.Sprintf("ControllerRevision %s of AddonStack %s is gone. It is made again once the stack is valid, and neither paused nor waiting for a source: see its conditions",
			a.Revision, a.Name)
	}
	return fmt.Sprintf("AddonStack %s has no valid revision yet, or its rollout has not come to this cluster: see its conditions", a.Name)
}

// whyOutdated says why a stack is assigned whose revision doesn't select the Cluster.
func (a *Stack) whyOutdated(cluster *member.Member) string {
	if !deselects(&a.Written.Spec, cluster) {
		return fmt.Sprintf("AddonStack %s selects %s as it is written now, and that isn't in force yet: see its conditions", a.Name, cluster)
	}
	return fmt.Sprintf("AddonStack %s doesn't select %s any more, and spec.stacks of this ClusterAddon doesn't follow: "+
		"see the stack's watch label, and the log of the provider instance", a.Name, cluster)
}

// deselects says whether it is certain that the spec doesn't select the Cluster.
func deselects(spec *addonsv1.AddonStackSpec, cluster *member.Member) bool {
	selects, err := stack.Selects(cluster.Namespace, spec, cluster)
	return err == nil && !selects
}

// FirstAwaited returns the name of the first stack that is awaited; false if none is.
func FirstAwaited(stacks map[string]Unresolved) (string, bool) {
	return FirstIn(stacks, decide.StackState.IsAwaited)
}

// FirstIn returns the name of the first stack whose state is so; false if none is.
func FirstIn(stacks map[string]Unresolved, isSo func(decide.StackState) bool) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		if isSo(stacks[name].State) {
			return name, true
		}
	}
	return "", false
}

// OpenQuestions returns why stacks are unresolved whose add-ons this cluster is to have, or has.
func (o *Observed) OpenQuestions() []string {
	has := sets.New[string]()
	for _, record := range o.Installed {
		has.Insert(record.Stack)
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(o.Unresolved)) {
		if is := o.Unresolved[name]; !is.State.KeepsStatus() && (has.Has(name) || is.State.IsAwaited()) {
			texts = append(texts, is.Why)
		}
	}
	return texts
}
