// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// Preview finds out what a revision of a stack does to the add-ons of a cluster. It changes nothing.
type Preview struct {
	Delivery
	Request plan.Request
	// Removed are the records of the add-ons that leave, and Kept the statuses of those that stay.
	Removed []deliver.Summary
	Kept    []addonsv1.AddonStatus

	coming *preview.Coming
}

// All returns what becomes of the stack's add-ons, each one after those that it depends on, and those that leave at last. If one gives
// up an object that another one wants, they are looked at once more: the object is created once it is deleted.
func (p Preview) All(ctx context.Context) ([]plan.Addon, error) {
	all, err := p.each(ctx, nil)
	if gone := given(all); len(gone) > 0 {
		all, err = p.each(ctx, gone)
	}
	return all, err
}

// given returns the objects that an add-on is refused, and that another one deletes with its change.
func given(all []plan.Addon) sets.Set[record.ObjectKey] {
	deleted, refused := sets.New[record.ObjectKey](), sets.New[record.ObjectKey]()
	for i := range all {
		for _, c := range all[i].Changes {
			switch {
			case c.Action == plan.Delete && !all[i].Removed && goesOn(&all[i]):
				deleted.Insert(preview.KeyOf(&c))
			case c.Action == plan.Refuse && c.Reason == object.ReasonOwnedByOther:
				refused.Insert(preview.KeyOf(&c))
			}
		}
	}
	return refused.Intersection(deleted)
}

// goesOn reports whether an add-on comes to what it is to be, as far as that is known.
func goesOn(a *plan.Addon) bool { return a.State != plan.Refused && a.State != plan.Held }

// each returns what becomes of the add-ons, if some objects are gone by then. For those that depend on it, an add-on counts as ready
// unless it is held or refused.
func (p Preview) each(ctx context.Context, gone sets.Set[record.ObjectKey]) (all []plan.Addon, err error) {
	p.coming = preview.NewComing(gone)
	holder := Holders(p.Wanted, p.Installed, p.Unresolved, p.ClusterAddon.Spec.Stacks)
	ready := maps.Clone(p.Absent)
	for i := range p.Wanted {
		a := &p.Wanted[i]
		if ready[a.Qualified()] = true; a.Stack != p.Request.Stack {
			continue
		}
		t := p.turnOf(a, holder[a.Release()], false, func(other string) bool { return ready[other] })
		one, err := p.wanted(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("add-on %s: %w", a.Name, err)
		}
		one.Namespace, one.Name = a.Release().Namespace, a.Release().Name
		ready[a.Qualified()] = goesOn(&one)
		all = append(all, one)
	}
	for _, removed := range p.Removed {
		if removed.Stack != p.Request.Stack {
			continue
		}
		one, err := p.leaving(ctx, removed)
		if err != nil {
			return nil, fmt.Errorf("add-on %s: %w", removed.Name, err)
		}
		all = append(all, one)
	}
	for _, kept := range p.Kept {
		if kept.Stack == p.Request.Stack {
			one := plan.In(plan.Held, kept.Reason, kept.Message)
			one.Namespace, one.Name, one.Removed = kept.Namespace, kept.Name, true
			all = append(all, one)
		}
	}
	return all, nil
}

// wanted returns what becomes of an add-on that the revision has, by the decisions of a reconcile.
func (p Preview) wanted(ctx context.Context, t *turn) (is plan.Addon, err error) {
	for {
		step := t.facts.Step()
		switch step {
		case decide.Compare:
			p.resolve(ctx, t)
			continue
		case decide.CheckPrecondition:
			unmet, err := UnmetPrecondition(ctx, p.Renderer, p.checks(t.addon), t.in, t.record)
			if t.unmet, t.facts.Precondition = unmet, checked(unmet); err != nil {
				return is, err
			}
			continue
		case decide.KeepWanted:
			return plan.In(plan.NotChecked, "", "The revision doesn't select the cluster"), nil
		case decide.Settle, decide.AwaitPostcondition:
			return plan.In(plan.Same, "", ""), nil
		case decide.Deliver, decide.GoBack:
			return p.delivered(ctx, t)
		case decide.ReportUnreadable:
			failed, ok := errors.AsType[*failure.Error](t.err)
			if !ok {
				return is, t.err
			}
			return plan.Stopped(failed, result.Shorten(failed.Error())), nil
		case decide.RefuseTaken, decide.RefuseAccount, decide.RefuseVersion:
			is.State = plan.Refused
		default:
			if t.in != nil && !t.in.Recorded {
				if is, err = p.delivered(ctx, t); err != nil {
					return is, err
				}
			}
			is.State = plan.Held
		}
		why := p.stay(t, step).Status
		is.Reason, is.Message = why.Reason, why.Message
		return is, nil
	}
}

// delivered returns what a delivery does.
func (p Preview) delivered(ctx context.Context, t *turn) (plan.Addon, error) {
	target, err := p.Workload.As(t.addon.Spec.ServiceAccountName)
	if err != nil {
		return plan.Addon{}, err
	}
	want := p.desired(t.in)
	want.TakesValues = p.Request.RecordedValues
	return p.Deliverer.Preview(ctx, target, want, p.coming)
}

// leaving returns what the removal of an add-on does.
func (p Preview) leaving(ctx context.Context, removed deliver.Summary) (plan.Addon, error) {
	target, err := p.Workload.As(removed.ServiceAccount)
	if err != nil {
		return plan.Addon{}, err
	}
	return p.Deliverer.PreviewRemoval(ctx, target, removed.Release, p.Proofs.Of(removed.Release), p.coming, p.Leaving...)
}
