// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/install"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/prune"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/ready"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
)

// Each step gets here what it needs of a call.

func (r *call) maker(checks readiness.Checks) *revision.Maker {
	return &revision.Maker{
		Want: r.want, Past: r.past, Checks: checks, Applier: r.applier, Own: r.t.own(), IsImpersonated: r.t.Own != nil,
		StoreOf: r.storeOf, Clock: r.d.options.Clock,
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

func (r *call) wait() *ready.Wait {
	return &ready.Wait{
		Record: r.rec, Store: r.past.Store, Objects: r.s.applied, Progress: &r.s.waiting, Watch: r.watch, Wanted: &r.s.wanted.Objects,
		Obsolete: r.obsolete, Postcondition: r.want.Postcondition, Deadline: r.deadline, Client: r.t.Client,
		Hidden: r.past.Hidden, Clock: r.d.options.Clock,
	}
}

func (r *call) install(wait *ready.Wait, checks readiness.Checks) *install.Step {
	return &install.Step{
		Wanted: &r.s.wanted, Progress: &r.s.install, Claimer: r.claimer(), Wait: wait, Checks: checks, Patience: &r.s.patience,
		Ignore: r.want.Ignore, Seen: r.want.Seen, Recreate: r.want.Recreate,
	}
}

func (r *call) pruner() *prune.Pruner {
	return &prune.Pruner{
		Record: r.rec, Adopted: r.past.Adopted, Applier: r.applier, Going: r.s.going, Tracker: r.s.tracker, Watch: r.watch,
		Patience: &r.s.patience, Deadline: r.deadline, Hidden: r.past.Hidden, Clock: r.d.options.Clock,
		Keeper: &keep.Keeper{
			Reader: r.t.own(), Discovery: r.t.Discovery, Scope: r.past.Scope, DataPolicy: r.dataPolicy(), IsApplied: r.s.applied.HasUID,
		},
	}
}

// dataPolicy is that of the add-on as it is wanted, or else of its record.
func (r *call) dataPolicy() addonsv1.DataPolicy {
	if r.want != nil {
		return r.want.DataPolicy
	}
	return r.rec.DataPolicy
}

func (r *call) hooks() *hooks.Runner {
	return &hooks.Runner{Store: r.past.Store, Progress: r.s.hooks, Pruner: r.pruner(), Claimer: r.claimer(), Removes: r.removes}
}

func (r *call) watch(objects ...observe.Object) {
	r.s.tracker.Track(r.t.Context, r.t.Dynamic, objects...)
}
