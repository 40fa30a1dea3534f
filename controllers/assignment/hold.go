// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// plan is an assignment of one cluster before it is written.
type plan struct {
	cluster    *member.Member
	ca         *addonsv1.ClusterAddon // with the policies that are written now
	stored     *addonsv1.ClusterAddon // as it was read
	candidates []candidate
	wanted     []addonsv1.StackRevision
	removed    []string      // stacks whose add-ons go
	again      time.Duration // until removals don't wait any more; 0 if none does
}

// hold takes out of the plan the removals that would take add-ons away from too many clusters at once, and aren't
// confirmed. A removal that isn't held counts towards the limit. A stack that stays as it is may lack an add-on that its newest
// revision would have had, so that another stack loses it: so the others are looked at again until no more stays.
func (r *Reconciler) hold(ctx context.Context, p *plan) error {
	undecided, gone := slices.Clone(p.ca.Spec.Stacks), []string(nil)
	for more := true; more; {
		lost := p.losses()
		before := undecided
		undecided, gone = nil, nil
		for _, previous := range before {
			its := lost[previous.Name]
			if p.isTold(previous) && previous.HeldRemoval == nil { // the cluster was told to remove the others when that was allowed
				its = slices.DeleteFunc(its, func(release string) bool { return !slices.Contains(previous.MovedAddons, release) })
			}
			stays, err := r.stays(ctx, p, previous, its)
			switch {
			case err != nil:
				return err
			case stays:
				continue
			case len(its) > 0 && previous.DeletionPolicy != addonsv1.DeletionPolicyOrphan: // else nothing is uninstalled
				gone = append(gone, previous.Name)
			}
			undecided = append(undecided, previous)
		}
		more = len(undecided) < len(before)
	}
	for _, name := range gone {
		p.letGo(name, r.removals)
	}
	moveAddons(p.cluster, p.candidates, p.ca.Spec.Stacks, p.wanted) // what is kept may be another stack's by now
	return nil
}

// isTold reports whether the cluster has the revision already that the plan gives it.
func (p *plan) isTold(previous addonsv1.StackRevision) bool {
	return names(p.wanted, previous.Name) && stack.AssignedRevision(p.wanted, previous.Name) == previous.Revision
}

// stays keeps a stack in the plan, or some of its add-ons, if these mustn't go now, and reports whether it did.
func (r *Reconciler) stays(ctx context.Context, p *plan, previous addonsv1.StackRevision, lost []string) (bool, error) {
	if wait := r.awaitsRequest(p, previous, lost); wait > 0 {
		previous.RemovalLimit = stack.Assigned(p.stored.Spec.Stacks, previous.Name).RemovalLimit // another one is looked at then
		p.keep(previous, previous.HeldRemoval)
		p.again = retry.Sooner(p.again, wait)
		return true, nil
	}
	switch {
	case isUnreported(p.ca, r.Clock.Now()) && p.drops(previous):
		p.keep(previous, previous.HeldRemoval) // until it says what the cluster runs: that counts
		return true, nil
	case len(lost) == 0:
		return false, nil
	case !names(p.wanted, previous.Name) && p.areAwaited(lost):
		p.keep(previous, previous.HeldRemoval) // until the other stack has them
		return true, nil
	case previous.DeletionPolicy == addonsv1.DeletionPolicyOrphan && !stack.LeavesAddons(p.ca, previous.Name):
		if find(p.candidates, previous.Name) == nil {
			previous.Paused = nil // nobody can resume it
		}
		p.keep(previous, previous.HeldRemoval) // until its records say so: the removal will go by them
		return true, nil
	case previous.DeletionPolicy == addonsv1.DeletionPolicyOrphan: // nothing is uninstalled
		return false, nil
	}
	held, err := r.held(ctx, p, previous, lost)
	if err != nil || held == nil {
		return false, err
	}
	if !p.isTold(previous) && len(held.Addons) < len(lost) {
		p.letGo(previous.Name, r.removals) // the others
	}
	p.keepHeld(previous, held)
	return true, nil
}

// letGo counts a removal.
func (p *plan) letGo(name string, of removals) {
	p.removed = append(p.removed, name)
	of.add(stackKey(p.ca.Namespace, name), p.ca.Name)
}

// held returns what of one stack is held on the cluster, nil for nothing. A change that is held stays so until it is
// confirmed, the limit is another one, or another change comes in its place.
func (r *Reconciler) held(ctx context.Context, p *plan, previous addonsv1.StackRevision, lost []string) (*addonsv1.HeldRemoval, error) {
	key, target := stackKey(p.ca.Namespace, previous.Name), find(p.candidates, previous.Name)
	lost = slices.Sorted(slices.Values(p.unallowed(target, lost)))
	change, cause := changeOf(key, previous.Revision, target, p.wanted)
	is := &addonsv1.HeldRemoval{Cause: cause}
	isHeld := previous.HeldRemoval != nil && isOf(previous.HeldRemoval.Confirmation, change)
	if isHeld {
		is.Confirmation = previous.HeldRemoval.Confirmation
		if target != nil && previous.Revision == target.revision { // the rest was let go
			lost = slices.DeleteFunc(lost, func(release string) bool {
				return !slices.Contains(previous.HeldRemoval.Addons, release) && !slices.Contains(previous.MovedAddons, release)
			})
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	is.Addons = lost[:min(len(lost), maxHeldAddons)]
	if isHeld && confirmationsOf(p.ca).Has(is.Confirmation) {
		r.confirmations.spend(change)
		return nil, nil
	}
	if isHeld && equality.Semantic.DeepEqual(stack.Assigned(p.stored.Spec.Stacks, previous.Name).RemovalLimit, previous.RemovalLimit) {
		return is, nil
	}
	cas := &addonsv1.ClusterAddonList{}
	if err := r.Client.List(ctx, cas, client.InNamespace(p.ca.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", p.ca.Namespace, err)
	}
	if isPaused := target == nil && ptr.Deref(previous.Paused, false); !isPaused && !r.absences.isAmidst(key) {
		limit := previous.RemovalLimit
		if target != nil {
			limit = target.spec.RemovalLimit
		}
		if exceeds, err := r.exceeds(ctx, p, previous.Name, limit, cas.Items); err != nil || !exceeds {
			return nil, err
		}
	}
	if is.Confirmation = r.confirmations.of(change, cas.Items); confirmationsOf(p.ca).Has(is.Confirmation) {
		return nil, nil
	}
	return is, nil
}

// maxHeldAddons is how many add-ons a held removal names (heldRemoval.addons, MaxItems).
const maxHeldAddons = 64

// exceeds reports whether more clusters lose add-ons of a stack, now or lately, than the limit allows of all that have some.
// It looks at no more of them than that takes: in a large fleet each cluster asks about all others.
func (r *Reconciler) exceeds(ctx context.Context, p *plan, name string, limit *intstr.IntOrString, cas []addonsv1.ClusterAddon) (bool, error) {
	clusters, err := r.Members.List(ctx, p.ca.Namespace)
	if err != nil {
		return false, err
	}
	losing, all, others := r.losers(clusters, p.ca.Name, name, cas)
	allowed := allowance(limit, all)
	if losing+len(others) <= allowed {
		return false, nil
	}
	for i := 0; i < len(others) && losing <= allowed; i++ {
		if p.loses(clusters[others[i].Name], others[i], name) {
			losing++
		}
	}
	return losing > allowed, nil
}

// losers returns how many clusters lose add-ons of a stack, with those that did lately and one that is known to; how many have
// some; and those that have some and may lose them.
func (r *Reconciler) losers(clusters map[string]*member.Member, known, name string, cas []addonsv1.ClusterAddon) (losing, all int, others []*addonsv1.ClusterAddon) {
	for i := range cas {
		ca := &cas[i]
		cluster := clusters[ca.Name]
		switch {
		case ca.Name == known: // whatever others would lose by the same change
			losing++
		case r.removals.includes(stackKey(ca.Namespace, name), ca.Name), lastRemovals(ca)[name].After(r.Clock.Now().Add(-removalWindow)):
			losing++
		case cluster == nil || cluster.Deleting || !has(ca, name):
			continue
		case !isPaused(cluster, ca):
			others = append(others, ca)
		}
		all++
	}
	return losing, all, others
}

// loses reports whether a cluster is to lose add-ons of a stack that nobody has allowed.
func (p *plan) loses(cluster *member.Member, ca *addonsv1.ClusterAddon, name string) bool {
	other := &plan{cluster: cluster, ca: ca, candidates: p.candidates, wanted: assign(cluster, p.candidates, ca)}
	return len(other.unallowed(find(p.candidates, name), other.losses()[name])) > 0
}

// keepHeld leaves what is held. Add-ons that their stack has no more stay beside its newest revision; else the whole
// stack stays at the revision that the cluster has.
func (p *plan) keepHeld(previous addonsv1.StackRevision, held *addonsv1.HeldRemoval) {
	at := slices.IndexFunc(p.wanted, func(s addonsv1.StackRevision) bool { return s.Name == previous.Name })
	target := find(p.candidates, previous.Name)
	if at < 0 || target == nil || held.Cause != addonsv1.RemovalAddonsDropped || len(held.Addons) == maxHeldAddons || target.hasOneOf(held.Addons) {
		p.keep(previous, held)
		return
	}
	p.wanted[at].HeldRemoval = held
}

// keep leaves a stack in the assignment as it is, with what is held.
func (p *plan) keep(previous addonsv1.StackRevision, held *addonsv1.HeldRemoval) {
	previous.HeldRemoval = held
	p.wanted = slices.DeleteFunc(p.wanted, func(s addonsv1.StackRevision) bool { return s.Name == previous.Name })
	p.wanted = append(p.wanted, previous)
}

// tellHeld sends events of changes that are held from now on, and of confirmations that fit none.
func (r *Reconciler) tellHeld(before, after *addonsv1.ClusterAddon, cluster *member.Member) {
	for _, confirmation := range sets.List(confirmationsOf(before)) {
		if !hasHeld(before, confirmation) {
			r.Recorder.Eventf(after, cluster.Object(), corev1.EventTypeWarning, "ConfirmationIgnored", "Assign",
				"Annotation %s=%s is of no removal that is held: see heldRemoval in spec.stacks", addonsv1.ConfirmRemovalAnnotation, confirmation)
		}
	}
	for _, s := range after.Spec.Stacks {
		if s.HeldRemoval != nil && !hasHeld(before, s.HeldRemoval.Confirmation) {
			r.Recorder.Eventf(after, cluster.Object(), corev1.EventTypeWarning, addonsv1.RemovalHeldReason, "Assign", "%s", stack.DescribeHeld(after.Namespace, &s))
		}
	}
}

// hasHeld reports whether a removal with the confirmation is held on the cluster.
func hasHeld(ca *addonsv1.ClusterAddon, confirmation string) bool {
	return slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool {
		return s.HeldRemoval != nil && s.HeldRemoval.Confirmation == confirmation
	})
}
