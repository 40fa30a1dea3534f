// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// removalWindow is how long a removal counts towards spec.removalLimit.
const removalWindow = 10 * time.Minute

// plan is an assignment of one cluster before it is written.
type plan struct {
	cluster    *member.Member
	ca         *addonsv1.ClusterAddon
	candidates []candidate
	wanted     []addonsv1.StackRevision
}

// hold returns the wanted revisions. A change that would take add-ons away from too many clusters
// at once, and isn't confirmed, is left out. What isn't held counts towards the limit.
func (r *Reconciler) hold(ctx context.Context, p *plan) ([]addonsv1.StackRevision, error) {
	lost := losses(p.ca, p.wanted, p.candidates)
	for _, former := range p.ca.Spec.Stacks {
		if len(lost[former.Name]) == 0 {
			continue
		}
		held := heldRemoval(former, find(p.candidates, former.Name), p.wanted, lost[former.Name])
		holds, err := r.holds(ctx, p, former, held)
		if err != nil {
			return nil, err
		}
		if holds {
			p.keep(former, held)
			continue
		}
		r.removals.Set(removal{stackKey(p.ca.Namespace, former.Name), p.ca.Name}, nil, removalWindow)
	}
	return p.wanted, nil
}

// holds decides about one stack of the cluster. What is held stays so until it is confirmed.
func (r *Reconciler) holds(ctx context.Context, p *plan, former addonsv1.StackRevision, held *addonsv1.HeldRemoval) (bool, error) {
	switch {
	case p.ca.Annotations[addonsv1.ConfirmRemovalAnnotation] == held.Confirmation:
		return false, nil
	case former.HeldRemoval != nil, r.absences.isAmidst(stackKey(p.ca.Namespace, former.Name)):
		return true, nil
	}
	orphans, err := r.orphans(ctx, p.ca.Namespace, former)
	if err != nil || orphans {
		return false, err
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
		case lately:
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

// orphans reports whether the assigned revision leaves the add-ons in the clusters.
func (r *Reconciler) orphans(ctx context.Context, namespace string, assigned addonsv1.StackRevision) (bool, error) {
	if assigned.Revision == "" {
		return false, nil
	}
	revision := &appsv1.ControllerRevision{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: assigned.Revision}, revision); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	spec, err := stack.SpecOf(revision)
	return err == nil && spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan, err
}

// keep leaves a stack in the assignment as it is, with what is held.
func (p *plan) keep(former addonsv1.StackRevision, held *addonsv1.HeldRemoval) {
	former.HeldRemoval = held
	p.wanted = slices.DeleteFunc(p.wanted, func(s addonsv1.StackRevision) bool { return s.Name == former.Name })
	p.wanted = append(p.wanted, former)
}

// removal is that of add-ons of a stack from a cluster.
type removal struct {
	stack   client.ObjectKey
	cluster string
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
