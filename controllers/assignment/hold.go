// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// plan is an assignment of one cluster before it is written.
type plan struct {
	cluster    *member.Member
	ca         *addonsv1.ClusterAddon
	candidates []candidate
	wanted     []addonsv1.StackRevision
	removed    []string // stacks whose add-ons go
}

// hold takes a change out of the plan that would take add-ons away from too many clusters at once, and isn't
// confirmed. What isn't held counts towards the limit. A cluster that hasn't been told that add-ons are left
// behind is told first.
func (r *Reconciler) hold(ctx context.Context, p *plan) error {
	lost := losses(p.ca, p.wanted, p.candidates)
	for _, former := range p.ca.Spec.Stacks {
		switch {
		case len(lost[former.Name]) == 0:
			continue
		case former.DeletionPolicy == addonsv1.DeletionPolicyOrphan && p.ca.Status.ObservedGeneration != p.ca.Generation:
			p.keep(former, former.HeldRemoval) // until its records say so: the removal will go by them
			continue
		case former.DeletionPolicy == addonsv1.DeletionPolicyOrphan && former.HeldRemoval == nil:
			continue
		}
		held := heldRemoval(former, find(p.candidates, former.Name), p.wanted, lost[former.Name])
		holds, err := r.holds(ctx, p, former, held)
		if err != nil {
			return err
		}
		if holds {
			p.keep(former, held)
			continue
		}
		p.removed = append(p.removed, former.Name)
		r.removals.Set(removal{stackKey(p.ca.Namespace, former.Name), p.ca.Name}, nil, removalWindow)
	}
	return nil
}

// holds decides about one stack of the cluster. What is held stays so until it is confirmed.
func (r *Reconciler) holds(ctx context.Context, p *plan, former addonsv1.StackRevision, held *addonsv1.HeldRemoval) (bool, error) {
	switch {
	case p.ca.Annotations[addonsv1.ConfirmRemovalAnnotation] == held.Confirmation:
		return false, nil
	case former.HeldRemoval != nil, r.absences.isAmidst(stackKey(p.ca.Namespace, former.Name)):
		return true, nil
	}
	losing, all, err := r.losing(ctx, p, former.Name)
	if err != nil {
		return false, err
	}
	limit := former.RemovalLimit
	if target := find(p.candidates, former.Name); target != nil {
		limit = target.spec.RemovalLimit
	}
	return exceeds(limit, losing, all), nil
}

// losing counts the clusters that lose add-ons of a stack now or lately, and all that have some.
func (r *Reconciler) losing(ctx context.Context, p *plan, name string) (losing, all int, err error) {
	clusters, err := r.Members.List(ctx, p.ca.Namespace)
	if err != nil {
		return 0, 0, err
	}
	cas := &addonsv1.ClusterAddonList{}
	if err := r.Client.List(ctx, cas, client.InNamespace(p.ca.Namespace)); err != nil {
		return 0, 0, fmt.Errorf("listing ClusterAddons of namespace %s: %w", p.ca.Namespace, err)
	}
	for i := range cas.Items {
		ca := &cas.Items[i]
		cluster := clusters[ca.Name]
		_, lately := r.removals.Get(removal{stackKey(ca.Namespace, name), ca.Name})
		switch {
		case lately, lastRemovals(ca)[name].After(time.Now().Add(-removalWindow)):
			losing++
		case cluster == nil || cluster.Deleting || !has(ca, name):
			continue
		case !isPaused(cluster, ca) && len(losses(ca, assign(cluster, p.candidates, ca.Spec.Stacks), p.candidates)[name]) > 0:
			losing++
		}
		all++
	}
	return losing, all, nil
}

// keep leaves a stack in the assignment as it is, with what is held.
func (p *plan) keep(former addonsv1.StackRevision, held *addonsv1.HeldRemoval) {
	former.HeldRemoval = held
	p.wanted = slices.DeleteFunc(p.wanted, func(s addonsv1.StackRevision) bool { return s.Name == former.Name })
	p.wanted = append(p.wanted, former)
}

func stackKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// tellHeld sends events of changes that are held from now on, and of a confirmation that fits none.
func (r *Reconciler) tellHeld(before, after *addonsv1.ClusterAddon, cluster *member.Member, confirmation string) {
	confirmed := confirmation == ""
	for _, s := range before.Spec.Stacks {
		confirmed = confirmed || s.HeldRemoval != nil && s.HeldRemoval.Confirmation == confirmation
	}
	if !confirmed {
		r.Recorder.Eventf(after, cluster.Object(), corev1.EventTypeWarning, "ConfirmationIgnored", "Assign",
			"Annotation %s=%s is of no removal that is held: see heldRemoval in spec.stacks", addonsv1.ConfirmRemovalAnnotation, confirmation)
	}
	for _, s := range after.Spec.Stacks {
		if s.HeldRemoval == nil || slices.ContainsFunc(before.Spec.Stacks, func(b addonsv1.StackRevision) bool {
			return b.Name == s.Name && b.HeldRemoval != nil && b.HeldRemoval.Confirmation == s.HeldRemoval.Confirmation
		}) {
			continue
		}
		r.Recorder.Eventf(after, cluster.Object(), corev1.EventTypeWarning, addonsv1.RemovalHeldReason, "Assign", "%s", stack.DescribeHeld(after.Namespace, &s))
	}
}
