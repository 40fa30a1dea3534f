// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/deletion"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/install"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/prune"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/ready"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
)

// Each step gets here what it needs of a call.

func (d *Deliverer) maker(t Target, want *Desired, past *history.History) *revision.Maker {
	return &revision.Maker{
		Want: want, Past: past, Applier: apply.Applier{Client: t.Client, Scope: past.Scope}, Own: t.own(), IsImpersonated: t.Own != nil,
		StoreOf: func(release Release) *record.Store { return d.storeOf(t, release, past.Memory) }, Clock: d.options.Clock,
	}
}

// claimer takes over nothing in a removal, whose hooks may stay.
func (r *call) claimer() *claim.Claimer {
	c := &claim.Claimer{Applier: r.applier, StoreOf: r.storeOf}
	if r.want != nil {
		c.Adoption, c.CRDPolicy, c.Leaving = r.want.Adoption, r.want.CRDPolicy, r.want.Leaving
	}
	return c
}

func (r *call) install(checks readiness.Checks) *install.Step {
	claimer := r.claimer()
	claimer.Applier.IsRead = func(o *unstructured.Unstructured) bool { return len(checks.For(o)) > 0 }
	return &install.Step{
		Policy: policyOf(r.want, checks),
		Record: r.rec, Store: r.past.Store, Wanted: &r.s.wanted, Objects: r.s.applied, Progress: &r.s.install, Applier: r.applier,
		Claimer: claimer, Watch: r.watch, Patience: r.patience(), Hidden: r.past.Hidden, Yields: r.want.Yields,
		Wait: &ready.Wait{
			Record: r.rec, Store: r.past.Store, Objects: r.s.applied, Progress: &r.s.waiting, Watch: r.watch, Wanted: &r.s.wanted.Objects,
			Obsolete: r.obsolete, Postcondition: r.want.Postcondition, Deadline: r.deadline, Client: r.t.Client,
			Hidden: r.past.Hidden, Clock: r.d.options.Clock,
		},
	}
}

func policyOf(want *Desired, checks readiness.Checks) install.Policy {
	return install.Policy{Checks: checks, Ignore: want.Ignore, Seen: want.Seen, Recreate: want.Recreate}
}

func (r *call) deleter() *deletion.Deleter {
	return &deletion.Deleter{Applier: r.applier, Going: r.s.going, Tracker: r.s.tracker, Watch: r.watch, Patience: r.patience()}
}

func (r *call) pruner(calledOff bool) *prune.Pruner {
	return &prune.Pruner{
		Record: r.rec, Adopted: r.past.Adopted, CalledOff: calledOff, Applier: r.applier, Keeper: r.keeper(), Deleter: r.deleter(),
		Patience: r.patience(), Hidden: r.past.Hidden,
	}
}

// keeper keeps data by the policy of the add-on as it is wanted, or else of its record.
func (r *call) keeper() *keep.Keeper {
	if r.want != nil {
		return r.t.keeper(r.past.Scope, r.want.DataPolicy, r.s.applied.HasUID)
	}
	return r.t.keeper(r.past.Scope, r.rec.DataPolicy, r.s.applied.HasUID)
}

func (t Target) keeper(scope *object.Scope, policy addonsv1.DataPolicy, isApplied func(types.UID) bool) *keep.Keeper {
	return &keep.Keeper{Reader: t.own(), Discovery: t.Discovery, Scope: scope, DataPolicy: policy, IsApplied: isApplied}
}

func (r *call) hooks() *hooks.Runner {
	return &hooks.Runner{
		Record: r.rec, Store: r.past.Store, Progress: r.s.hooks, Applier: r.applier, Deleter: r.deleter(), Keeper: r.keeper(),
		Claimer: r.claimer(), Tracker: r.s.tracker, Watch: r.watch, Patience: r.patience(), Hidden: r.past.Hidden, Removes: r.removes,
	}
}

func (r *call) patience() outcome.Patience {
	return outcome.Patience{Since: &r.s.stoppedSince, Deadline: r.deadline, Clock: r.d.options.Clock}
}

func (r *call) watch(objects ...observe.Object) {
	r.s.tracker.Track(r.t.Context, r.t.Dynamic, objects...)
}
