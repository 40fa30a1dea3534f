// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/version"
)

// assignmentGrace is how long an assignment may be outdated, or name a stack that is gone, before
// the status says so. Mostly it follows within milliseconds.
const assignmentGrace = 10 * time.Second

// deletionGrace is how long an assignment may name a stack of which it is known that it is there no more. It follows once the
// stack has been gone for a while, and later where many go at once.
const deletionGrace = 5 * time.Minute

// assignedStack is a stack that the cluster is to run.
type assignedStack struct {
	addonsv1.StackRevision
	// written is the stack as it is written now, nil if it isn't there for this instance.
	written *addonsv1.AddonStack
	// deleted says that the stack isn't there for any instance.
	deleted bool
	// spec is that of the revision, nil if it can't be found, or isn't known in full.
	spec *addonsv1.AddonStackSpec
	// generation is the stack's last one that the revision is for.
	generation int64
	// pinned are the digests of values that the revision was made with.
	pinned stack.Inputs
	// unknown are the fields of the revision that this program doesn't know.
	unknown []string
}

// unresolvedStack is an assigned stack of which it isn't known what it wants.
type unresolvedStack struct {
	state decide.StackState
	why   string
	// isNew says that it has been so for a moment only. Mostly it isn't any more in the next one.
	isNew bool
}

// maxFields is how many fields that this program doesn't know a text names.
const maxFields = 3

// stacks are what is known of all stacks that the cluster is to run.
type stacks struct {
	wanted     []wanted.Addon // each one after those it depends on
	unresolved map[string]unresolvedStack
	// paused are the stacks for which nothing is written to the cluster.
	paused sets.Set[string]
	// heldRemovals are those that wait for confirmation, as people are told of them.
	heldRemovals []string
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	// outdated are the stacks for which an upgrade of Kubernetes waits until the assignment has had time to follow.
	outdated []string
	// recheckAfter is when one of them won't be given more time; zero if none is.
	recheckAfter time.Duration
}

// stackReader reads stacks of the management cluster.
type stackReader struct {
	cache, direct client.Reader
	namespace     string
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	now           time.Time
}

func (r stackReader) keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: name}
}

// read reads the stacks that a cluster is to run, and their revisions.
func (r stackReader) read(ctx context.Context, assigned []addonsv1.StackRevision) ([]assignedStack, error) {
	all := make([]assignedStack, 0, len(assigned))
	for _, a := range assigned {
		one := assignedStack{StackRevision: a, written: &addonsv1.AddonStack{}}
		if err := r.cache.Get(ctx, r.keyOf(a.Name), one.written); apierrors.IsNotFound(err) {
			one.written = nil
			if one.deleted, err = r.isDeleted(ctx, a.Name); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, fmt.Errorf("reading AddonStack %s: %w", a.Name, err)
		}
		if a.Revision != "" {
			revision := &appsv1.ControllerRevision{}
			err := r.cache.Get(ctx, r.keyOf(a.Revision), revision)
			if err == nil {
				one.spec, one.unknown, err = stack.Read(revision)
			}
			if err == nil {
				one.pinned, err = stack.InputsOf(revision)
				one.generation = stack.Generation(revision)
			}
			if len(one.unknown) > 0 {
				one.spec = nil
			}
			if client.IgnoreNotFound(err) != nil { // its coming is an event
				return nil, fmt.Errorf("reading revision of AddonStack %s: %w", a.Name, err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// isDeleted reports whether a stack that this instance doesn't see is there for none. It asks once the assignment should have
// followed.
func (r stackReader) isDeleted(ctx context.Context, name string) (bool, error) {
	if since, known := r.outdatedSince[name]; !known || r.now.Sub(since) < assignmentGrace {
		return false, nil
	}
	s := &metav1.PartialObjectMetadata{}
	s.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	err := r.direct.Get(ctx, r.keyOf(name), s)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for AddonStack %s: %w", name, err)
	}
	return err != nil, nil
}

// resolveStacks decides what each stack wants. A stack without a readable revision is unresolved:
// its add-ons stay. So is one whose assignment is outdated for longer than assignmentGrace.
func resolveStacks(all []assignedStack, cluster *member.Member, since map[string]time.Time, now time.Time) stacks {
	s := stacks{unresolved: map[string]unresolvedStack{}, paused: sets.New[string](), outdatedSince: map[string]time.Time{}}
	isGiven := func(name string) bool { return s.isGiven(name, assignmentGrace, since, now) }
	for i := range all {
		a := &all[i]
		if a.HeldRemoval != nil {
			s.heldRemovals = append(s.heldRemovals, stack.DescribeHeld(cluster.Namespace, &a.StackRevision))
		}
		if a.isPaused() {
			s.paused.Insert(a.Name)
		}
		outdated := a.spec != nil && deselects(a.spec, cluster) && !a.isPaused() // a pause keeps the assignment
		switch {
		case a.HeldRemoval != nil && (a.written == nil || a.spec == nil || outdated):
			s.unresolved[a.Name] = a.held(outdated && a.written != nil)
		case a.written == nil && a.Revision != "":
			s.unresolved[a.Name] = unresolvedStack{state: decide.Foreign, why: a.whyUnreadable()}
			if isGiven(a.Name) || a.deleted && s.isGiven(a.Name, deletionGrace, since, now) { // a revision may outlive its stack for a moment
				s.unresolved[a.Name] = unresolvedStack{state: decide.JustGone, why: a.whyUnreadable(), isNew: true}
			}
		case a.written == nil:
			s.unresolved[a.Name] = unresolvedStack{state: decide.Unseen, why: a.whyUnreadable(), isNew: isGiven(a.Name)}
		case a.spec == nil:
			s.unresolved[a.Name] = unresolvedStack{state: decide.Undecided, why: a.whyUnreadable(), isNew: isGiven(a.Name)}
		case outdated && !isGiven(a.Name):
			s.unresolved[a.Name] = unresolvedStack{state: decide.Undecided, why: a.whyOutdated(cluster)}
		default:
			s.wanted = append(s.wanted, a.addons(outdated)...)
		}
	}
	s.wanted = stack.InOrder(s.wanted,
		(*wanted.Addon).Qualified,
		func(a *wanted.Addon) []string { return stack.QualifiedAll(a.Stack, a.DependsOn) })
	return s
}

// held returns the state of a stack whose removal from the cluster is held.
func (a *assignedStack) held(isDeselected bool) unresolvedStack {
	is := unresolvedStack{state: decide.Held, why: "The removal of its add-ons is held"}
	if isDeselected {
		is.state = decide.Deselected
	}
	return is
}

// isGiven reports whether the assignment of a stack is given more of its time to follow.
func (s *stacks) isGiven(name string, grace time.Duration, since map[string]time.Time, now time.Time) bool {
	began, known := since[name]
	if !known {
		began = now
	}
	s.outdatedSince[name] = began
	left := max(0, grace-now.Sub(began))
	s.recheckAfter = retry.Sooner(s.recheckAfter, left)
	return left > 0
}

// addons returns what the stack wants. An outdated revision doesn't select the Cluster any more, so
// its add-ons are left as they are. Policies are no content of the revision: Orphan counts as soon as anything says so.
func (a *assignedStack) addons(outdated bool) []wanted.Addon {
	spec := *a.spec
	if spec.DeletionPolicy = a.DeletionPolicy; a.written.Spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		spec.DeletionPolicy = a.written.Spec.DeletionPolicy
	}
	all := make([]wanted.Addon, 0, len(a.spec.Addons))
	for _, each := range a.spec.Addons {
		all = append(all, wanted.Addon{
			Addon: each, Stack: a.Name, Spec: spec, Outdated: outdated, Paused: a.isPaused(), Rollout: a.written.Spec.Rollout, Sources: each.ValuesFrom, Pinned: a.pinned,
		})
	}
	return all
}

// isPaused reports whether nothing is to be written to the cluster for the stack. The assignment may be behind.
func (a *assignedStack) isPaused() bool {
	return ptr.Deref(a.Paused, false) || a.written != nil && annotations.HasPaused(a.written)
}

func (a *assignedStack) whyUnreadable() string {
	if a.written == nil {
		if a.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
			return fmt.Sprintf("AddonStack %s is gone, and its add-ons are to be left behind: the cluster is told that first", a.Name)
		}
		if a.deleted {
			return fmt.Sprintf("AddonStack %s is gone, and still in spec.stacks of this ClusterAddon: see the log of the provider instance", a.Name)
		}
		return fmt.Sprintf("AddonStack %s has no valid revision that this instance can see: see the stack's watch label", a.Name)
	}
	if len(a.unknown) > 0 {
		return fmt.Sprintf("AddonStack %s has %s, which version %s of the provider instance doesn't know: upgrade it",
			a.Name, message.List(a.unknown, ", ", maxFields), version.Get())
	}
	if a.Revision != "" {
		return fmt.Sprintf("ControllerRevision %s of AddonStack %s is gone. It is made again once the stack is valid, and neither paused nor waiting for a source: see its conditions",
			a.Revision, a.Name)
	}
	return fmt.Sprintf("AddonStack %s has no valid revision yet, or its rollout has not come to this cluster: see its conditions", a.Name)
}

// whyOutdated says why a stack is assigned whose revision doesn't select the Cluster.
func (a *assignedStack) whyOutdated(cluster *member.Member) string {
	if !deselects(&a.written.Spec, cluster) {
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

// firstAwaited returns the name of the first stack that is awaited; false if none is.
func firstAwaited(stacks map[string]unresolvedStack) (string, bool) {
	return firstIn(stacks, decide.StackState.IsAwaited)
}

// firstIn returns the name of the first stack whose state is so; false if none is.
func firstIn(stacks map[string]unresolvedStack, isSo func(decide.StackState) bool) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		if isSo(stacks[name].state) {
			return name, true
		}
	}
	return "", false
}

// openQuestions returns why stacks are unresolved whose add-ons this cluster is to have, or has.
func (s *stacks) openQuestions(installed map[deliver.Release]deliver.Summary) []string {
	has := sets.New[string]()
	for _, record := range installed {
		has.Insert(record.Stack)
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(s.unresolved)) {
		if is := s.unresolved[name]; !is.state.KeepsStatus() && (has.Has(name) || is.state.IsAwaited()) {
			texts = append(texts, is.why)
		}
	}
	return texts
}
