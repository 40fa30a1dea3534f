// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/removal"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// Preview returns what Ensure would do to an add-on. It writes nothing, and has no session, so that it holds no add-on. Coming gets
// the kinds and namespaces that the add-on brings. An error says nothing of the add-on.
func (d *Deliverer) Preview(ctx context.Context, t Target, want Desired, coming *preview.Coming) (plan.Addon, error) {
	return d.foretell(ctx, t, &want, func(t Target, past *history.History) (plan.Addon, error) {
		return d.preview(ctx, t, &want, past, coming)
	})
}

// PreviewRemoval returns what Remove would do to an add-on. The objects that others take over by what comes stay.
func (d *Deliverer) PreviewRemoval(ctx context.Context, t Target, release Release, proof string, coming *preview.Coming, leaving ...Release) (plan.Addon, error) {
	a, err := d.foretell(ctx, t, &Desired{Release: release, Proof: proof}, func(t Target, past *history.History) (plan.Addon, error) {
		return d.previewRemoval(ctx, t, past, coming, leaving)
	})
	a.Removed = true
	return a, err
}

// foretell reads the records of a release, and has it found out what would become of that. Each write of that is a dry run. A refusal
// becomes the add-on's state.
func (d *Deliverer) foretell(ctx context.Context, t Target, of *Desired, find func(Target, *history.History) (plan.Addon, error)) (a plan.Addon, err error) {
	if t.Own != nil {
		t.Own = client.NewDryRunClient(t.Own)
	}
	t.Client = client.NewDryRunClient(t.Client)
	scope, claimed := t.scopeOf(of.Release), memory.New(ctx, d.options.Memory, d.options.Clock)
	defer claimed.End()
	defer func() {
		if value := recover(); value != nil {
			a, err = plan.In(plan.Refused, ReasonInternalError, Panicked(ctx, t.Name, value)), nil
		}
		a.Namespace, a.Name = of.Namespace, of.Name
	}()
	past := &history.History{Store: d.storeOf(t, of.Release, claimed), Scope: scope, Hidden: hidden.New(scope, of.Sensitive), Proof: of.Proof, Memory: claimed}
	if err = past.List(ctx); err == nil {
		a, err = find(t, past)
	}
	if fault, ok := errors.AsType[*record.Fault](err); ok {
		_, err = stopForRecord(ctx, past, false, err, fault)
	}
	refusal, refused := errors.AsType[*failure.Error](err)
	if f, ok := errors.AsType[*object.Failure](err); ok && !refused && f.Kind != object.Transient {
		refusal, refused = failure.New(f.Reason, "%s", f.Message), true
		refusal.Wait = f.Kind == object.Deferred
	}
	if !refused {
		return a, past.Hidden.ConcealAll(err)
	}
	return plan.Stopped(refusal, past.Hidden.In(refusal.Error())), nil
}

func (d *Deliverer) preview(ctx context.Context, t Target, want *Desired, past *history.History, coming *preview.Coming) (plan.Addon, error) {
	maker := d.maker(t, want, past)
	digest, err := maker.WantedDigest(ctx)
	if err != nil {
		return plan.Addon{}, err
	}
	if maker.Checks, err = readiness.Compile(want.Readiness); err != nil {
		return plan.Addon{}, failure.New(ReasonReadinessInvalid, "%s", err.Error())
	}
	switch next := revision.Next(past.Records, digest, want, d.options.Clock.Now()); {
	case next.Step == revision.Settled && past.IsProven(past.Records[0]):
		return plan.In(plan.Same, "", ""), nil
	case next.Step == revision.RolledBack:
		o := rolledBackOutcome(past.Records[0], d.options.Clock.Now())
		return plan.In(plan.Same, o.Reason, past.Hidden.In(o.Message)), nil
	case next.Step == revision.Refuse:
		return plan.Addon{}, next.Refusal
	case want.Recorded:
		return plan.In(plan.NotChecked, ReasonInputReplaced, "A revision that a release record has is made again"), nil
	}
	made, err := maker.Draft(ctx)
	if err != nil || made.IsDeployed {
		return plan.In(plan.Same, "", ""), err
	}
	past.Hidden.LearnRecord(made.Record)
	lacks, err := maker.LacksNamespace(ctx)
	if err == nil && !lacks && !coming.Namespaces.Has(want.Namespace) {
		err = maker.MayKeepRecords(ctx)
	}
	if err != nil {
		return plan.Addon{}, err
	}
	var changes []plan.Change
	if lacks {
		namespace := preview.Of("v1", record.ObjectKey{Kind: object.NamespaceKind.Kind, Name: want.Namespace})
		changes = append(changes, namespace.As(plan.Create, "", ""))
		coming.Namespaces.Insert(want.Namespace)
	}
	p := d.previewer(t, want, past, coming)
	of, err := p.Objects(ctx, made)
	if err != nil {
		return plan.Addon{}, err
	}
	before, after, _ := hooks.Events(made.Record, past.IsUpgrade(nil))
	isHook := hooks.Keys(past.Scope, made.Record, before, after)
	obsolete := slices.DeleteFunc(record.Minus(made.Inventory, object.EntriesOf(made.CRDs, made.Objects)), func(e record.Entry) bool { return isHook[e.Key()] })
	gone, err := p.Gone(ctx, obsolete, past.Adopted, false)
	a := plan.AddonOf(slices.Concat(changes, of, gone, hooksIn(made.Record, past, before, after)))
	if len(made.Record.State.Generated) > 0 && a.State != plan.Same {
		a.Message = "Its chart makes up values: those that aren't installed yet will be others than here"
	}
	return a, err
}

// previewer returns what looks at objects for an add-on, nil as it is wanted for a removal.
func (d *Deliverer) previewer(t Target, want *Desired, past *history.History, coming *preview.Coming) *preview.Previewer {
	applier := apply.Applier{Client: t.Client, Scope: past.Scope}
	return &preview.Previewer{
		Applier: applier, Claimer: &claim.Claimer{Applier: applier, Adoption: want.Adoption, CRDPolicy: want.CRDPolicy, Leaving: want.Leaving},
		Keeper: t.keeper(past.Scope, want.DataPolicy, func(types.UID) bool { return false }),
		Hidden: past.Hidden, Policy: policyOf(want, nil), Conceals: want.TakesValues, Coming: coming,
	}
}

func (d *Deliverer) previewRemoval(ctx context.Context, t Target, past *history.History, coming *preview.Coming, leaving []Release) (plan.Addon, error) {
	if len(past.Records) == 0 || !past.Records[0].Owned {
		return plan.In(plan.Same, "", ""), nil
	}
	rec, err := loadProven(ctx, past, past.Records[0])
	if errors.Is(err, ErrUnproven) {
		return plan.In(plan.NotChecked, "", "Nothing proves its release record"), nil
	}
	if err != nil {
		return plan.Addon{}, err
	}
	inventory, err := past.Scope.InventoryOf(rec)
	if err != nil {
		return plan.Addon{}, err
	}
	if rec.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		var left []plan.Change
		for _, e := range inventory {
			c := preview.Of(e.GroupVersionKind().GroupVersion().String(), e.Key())
			left = append(left, c.As(plan.Keep, "", fmt.Sprintf("Left in the cluster as Helm release %s", past.Scope.Release)))
		}
		return plan.AddonOf(left), nil
	}
	calledOff := removal.IsCalledOff(rec, past.Records)
	p := d.previewer(t, &Desired{Release: past.Scope.Release, Terms: rec.Terms}, past, coming)
	changes, err := p.Gone(ctx, inventory, past.Adopted, calledOff)
	if err != nil {
		return plan.Addon{}, err
	}
	step := removal.Step{Record: rec, Past: past, Reader: t.own(), Leaving: leaving}
	why, err := step.LivesOn(ctx)
	if why == "" && !calledOff {
		changes = append(changes, hooksIn(rec, past, helmrelease.HookPreDelete, helmrelease.HookPostDelete)...)
	}
	return plan.AddonOf(changes), err
}

// hooksIn returns the hooks of a record that run.
func hooksIn(rec *record.Record, past *history.History, events ...helmrelease.HookEvent) (all []plan.Change) {
	for _, event := range events {
		for _, h := range hooks.Objects(past.Scope, rec, event) {
			c := preview.Of(h.GetAPIVersion(), record.KeyOf(h))
			all = append(all, c.As(plan.Hook, "", strings.ReplaceAll(event.String(), "-", " ")))
		}
	}
	return all
}
