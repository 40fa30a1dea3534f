// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// IsSlow implements [plan.Previewer].
func (r *Reconciler) IsSlow(cluster types.NamespacedName) bool { return r.lanes.isSlow(cluster) }

// Preview implements [plan.Previewer]. It gathers and decides as a reconcile does, with a memory of its own that is lost then.
func (r *Reconciler) Preview(ctx context.Context, request plan.Request) (is plan.Cluster, err error) {
	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, request.Cluster, ca); err != nil {
		return is, err
	}
	cluster, err := r.Members.Of(ctx, ca)
	if err != nil {
		return is, err
	}
	name := r.Members.Names.Fleet(ca)
	conn, connected := r.Fleet.Connection(name)
	if cluster == nil || !connected {
		return is, plan.ErrSilent
	}
	ctx, cancel := context.WithCancel(budget.WithTenant(ctx, budget.Tenant{Namespace: ca.Namespace, Cluster: ca.Name}))
	defer cancel()
	defer context.AfterFunc(conn.Context(), cancel)()
	q := &clusterRun{
		Reconciler: r, ca: ca, stored: ca.DeepCopy(), cluster: cluster, memory: newMemory(), now: r.Clock.Now(),
		workload: workload.Cluster{Name: name, Conn: conn, Namespace: ca.Namespace},
	}
	q.proofs = &q.memory.proofs
	q.proofs.Restore(q.stored, ca.UID)
	p := planning{q: delivery{q}, of: request, coming: preview.NewComing()}
	assigned, err := p.assign(ctx)
	if err != nil {
		return is, err
	}
	known, err := gathering{q}.observe(ctx, assigned, &inputs.References{})
	if known && err == nil {
		is.Addons, err = p.all(ctx)
	}
	if !known && err == nil || conn.Context().Err() != nil {
		err = plan.ErrSilent
	}
	return is, err
}

// planning finds out what a revision of a stack does to the add-ons of a cluster.
type planning struct {
	q      delivery
	of     plan.Request
	coming *preview.Coming
}

// assign returns the stacks that the cluster is to run, with the planned revision in its place.
func (p planning) assign(ctx context.Context) ([]assignedStack, error) {
	ca, name := p.q.ca, p.of.Stack
	at := slices.IndexFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == name })
	switch {
	case at < 0 && p.of.Spec != nil:
		at, ca.Spec.Stacks = len(ca.Spec.Stacks), append(ca.Spec.Stacks, addonsv1.StackRevision{Name: name})
	case at >= 0 && p.of.Spec == nil:
		ca.Spec.Stacks = slices.Delete(ca.Spec.Stacks, at, at+1)
	}
	assigned, err := p.q.stackReader().read(ctx, ca.Spec.Stacks)
	if err != nil || p.of.Spec == nil {
		return assigned, err
	}
	is := &assigned[at]
	is.Revision, is.DeletionPolicy, is.HeldRemoval = p.of.Revision, p.of.Spec.DeletionPolicy, nil
	is.spec, is.pinned, is.unknown = p.of.Spec, p.of.Inputs, nil
	if is.written == nil {
		is.written = &addonsv1.AddonStack{}
	}
	is.written.Spec, ca.Spec.Stacks[at] = *p.of.Spec, is.StackRevision
	return assigned, nil
}

// all returns what becomes of the stack's add-ons, each one after those that it depends on, and those that leave at last. For those
// that depend on it, an add-on counts as ready unless it is held or refused.
func (p planning) all(ctx context.Context) (all []plan.Addon, err error) {
	holder := releaseHolders(p.q.wanted, p.q.installed, p.q.unresolved, p.q.ca.Spec.Stacks)
	ready := maps.Clone(p.q.absent)
	for i := range p.q.wanted {
		a := &p.q.wanted[i]
		if ready[a.Qualified()] = true; a.Stack != p.of.Stack {
			continue
		}
		t := p.q.turnOf(a, holder[a.Release()], false, ready)
		one, err := p.wanted(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("add-on %s: %w", a.Name, err)
		}
		one.Namespace, one.Name = a.Release().Namespace, a.Release().Name
		ready[a.Qualified()] = one.State != plan.Refused && one.State != plan.Held
		all = append(all, one)
	}
	for _, record := range p.q.leaving {
		if record.Stack != p.of.Stack {
			continue
		}
		one, err := p.leaving(ctx, record, all)
		if err != nil {
			return nil, fmt.Errorf("add-on %s: %w", record.Name, err)
		}
		all = append(all, one)
	}
	for _, kept := range p.q.kept {
		if kept.Stack == p.of.Stack {
			all = append(all, plan.Addon{Namespace: kept.Namespace, Name: kept.Name, State: plan.Held, Removed: true, Reason: kept.Reason, Message: kept.Message})
		}
	}
	return all, nil
}

// wanted returns what becomes of an add-on that the revision has, by the decisions of a reconcile.
func (p planning) wanted(ctx context.Context, t *turn) (is plan.Addon, err error) {
	for {
		step := t.facts.Step()
		switch step {
		case decide.Compare:
			p.q.resolve(ctx, t)
			continue
		case decide.CheckPrecondition:
			unmet, err := p.q.unmetPrecondition(ctx, t.in, t.record)
			if t.unmet, t.facts.Precondition = unmet, checked(unmet); err != nil {
				return is, err
			}
			continue
		case decide.KeepWanted:
			return plan.Addon{State: plan.NotChecked, Message: "The revision doesn't select the cluster"}, nil
		case decide.Settle, decide.AwaitPostcondition:
			return plan.Addon{State: plan.Same}, nil
		case decide.Deliver, decide.GoBack:
			return p.delivered(ctx, t)
		case decide.ReportUnreadable:
			failed, ok := errors.AsType[*failure.Error](t.err)
			if !ok {
				return is, t.err
			}
			if is = (plan.Addon{State: plan.Refused, Reason: failed.Reason, Message: shorten(failed.Error())}); failed.Wait {
				is.State = plan.Held
			}
			return is, nil
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
		why := p.q.stay(t, step).status
		is.Reason, is.Message = why.Reason, why.Message
		return is, nil
	}
}

// delivered returns what a delivery does.
func (p planning) delivered(ctx context.Context, t *turn) (plan.Addon, error) {
	target, err := p.q.workload.As(t.addon.Spec.ServiceAccountName)
	if err != nil {
		return plan.Addon{}, err
	}
	return p.q.Deliverer.Preview(ctx, target, p.q.desired(t.in), p.of.Key, p.coming)
}

// leaving returns what the removal of an add-on does. The objects that others take over stay.
func (p planning) leaving(ctx context.Context, record deliver.Summary, others []plan.Addon) (plan.Addon, error) {
	target, err := p.q.workload.As(record.ServiceAccount)
	if err != nil {
		return plan.Addon{}, err
	}
	is, err := p.q.Deliverer.PreviewRemoval(ctx, target, record.Release, p.q.proofs.Of(record.Release), p.q.leavingReleases()...)
	for i := range is.Changes {
		c := &is.Changes[i]
		for _, other := range others {
			takes := func(o plan.Change) bool { return o.Action == plan.Adopt && o.Object == c.Object }
			if c.Action == plan.Delete && slices.ContainsFunc(other.Changes, takes) {
				c.Action, c.Message = plan.Keep, fmt.Sprintf("It goes over to add-on %s/%s", other.Namespace, other.Name)
			}
		}
	}
	return is, err
}
