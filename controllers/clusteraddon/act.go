// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// act does a step. After that it repairs what others changed of an installed add-on, and evaluates its health.
func (q delivery) act(ctx context.Context, t *turn, step decide.WantedStep) addonResult {
	switch step {
	case decide.KeepWanted:
		return addonResult{status: q.previousStatus(t.status), followUp: t.written.followUp}
	case decide.RefuseTaken:
		t.status = t.addon.Status() // the record is another one's
		return q.stay(t, step)
	case decide.RefuseAccount:
		return q.stay(t, step)
	}
	one := q.proceed(ctx, t, step)
	came := q.cameOf(ctx, t, step, one.status)
	one.status.Drift = q.previousStatus(one.status).Drift
	came.RepairFailed = q.repairs(t.addon).correct(ctx, t.record, &one)
	if err := one.requestErr; err != nil {
		failed := requestFailed(err, one.status)
		came.Said, one.followUp = saidIn(failed.status), one.and(failed.followUp)
	}
	if came.Say().Phase == addonsv1.AddonReady {
		came.Degraded = q.health(t.addon).look(ctx, t.record, t.in, &one)
	}
	if t.written.err != nil { // a removal would go by the previous terms
		unwritten := saidIn(t.written.status)
		came.TermsUnwritten = &unwritten
	}
	one.say(came.Say())
	one.followUp = one.and(t.written.followUp)
	return one
}

// cameOf gathers the facts about an add-on after a step.
func (q delivery) cameOf(ctx context.Context, t *turn, step decide.WantedStep, status addonsv1.AddonStatus) decide.Came {
	of := stack.StatusOf(&q.ca.Status, t.addon.Stack)
	came := decide.Came{
		Step: step, Said: saidIn(status), Was: saidIn(q.previousStatus(t.status)),
		SameRevision: of.Name != "" && of.Revision == stack.AssignedRevision(q.ca.Spec.Stacks, t.addon.Stack),
		HasTurn:      !of.InputsChanged.IsZero(),
		AsWanted:     t.addon.IsInstalledAs(t.record),
	}
	if came.AsWanted && reasons.Of(came.Said.Reason).Is(reasons.SourceFailed) {
		came.SameInputs = q.hasInputs(ctx, t.addon, t.record)
	}
	return came
}

// hasInputs reports whether the record is of the add-on's inputs, with the artifact that the record names.
func (q delivery) hasInputs(ctx context.Context, a *wanted.Addon, record deliver.Summary) bool {
	in := &inputs.Inputs{Addon: a, Chart: a.Reference(q.ca.Namespace), Artifact: record.Artifact}
	if err := q.reader().ReadValues(ctx, in, record); err != nil {
		return false
	}
	same, err := q.renderer().Settled(ctx, in, record)
	return same && err == nil
}

// proceed does a step of an add-on whose inputs were compared.
func (q delivery) proceed(ctx context.Context, t *turn, step decide.WantedStep) addonResult {
	switch step {
	case decide.ReportUnreadable:
		return q.inputFailed(t)
	case decide.AwaitPostcondition:
		return awaitPostcondition(t.addon, t.unmet, t.status)
	case decide.Settle:
		return q.settle(t)
	case decide.RetryPrecondition:
		return requestFailed(t.err, q.previousStatus(t.status))
	case decide.AwaitRecord:
		return recordLost(t.addon, t.status, q.memory.installPause(t.addon.Release(), q.now))
	case decide.GoBack:
		return q.goBack(ctx, t)
	case decide.Deliver:
		return q.change(ctx, t)
	}
	return q.stay(t, step)
}

// stay leaves an add-on as it is, and says why.
func (q delivery) stay(t *turn, step decide.WantedStep) addonResult {
	reason, text := deliver.ReasonInputReplaced, ""
	switch step {
	case decide.RefuseTaken:
		reason, text = reasons.ReleaseTaken, fmt.Sprintf("AddonStack %s has an add-on %s in namespace %s already; change spec.addons[].name or namespace of one of them",
			t.holder, t.addon.Name, t.status.Namespace)
	case decide.RefuseAccount:
		reason, text = reasons.ServiceAccountRequired, withoutServiceAccount
	case decide.RefuseVersion:
		reason, text = reasons.NoCompatibleVersion, t.addon.Incompatible
	case decide.AwaitResume:
		reason, text = reasons.StackPaused, fmt.Sprintf("It is installed or changed once AddonStack %s is resumed", t.addon.Stack)
	case decide.AwaitUpgrade:
		reason, text = t.holdReason, t.holdMessage
	case decide.AwaitConfirmation:
		reason, text = reasons.WaitingForConfirmation, fmt.Sprintf(
			"Waiting until the removal of other add-ons of AddonStack %s is confirmed or undone: it may come in the place of one of them", t.addon.Stack)
	case decide.AwaitDependency:
		reason, text = reasons.WaitingForDependency, q.describeMissing(t.addon, t.missing)
	case decide.AwaitPrecondition:
		reason, text = cmp.Or(t.unmet.Reason, reasons.WaitingForPrecondition), t.unmet.Message
	default: // ReportReplaced, KeepReplaced
		text = t.err.Error()
	}
	one := because(t.status, reason, text)
	if step == decide.AwaitPrecondition {
		one.retryAfter = t.unmet.RetryAfter
	}
	return one
}

// settle returns the result of an add-on that is installed as wanted.
func (q delivery) settle(t *turn) addonResult {
	one := addonResult{status: t.status}
	one.status.Phase, one.status.Message = addonsv1.AddonReady, cmp.Or(q.missingDependency(t.addon), shorten(deliver.ReadyMessage(t.record)))
	if !t.record.RenewAt.IsZero() {
		one.retryAfter = t.record.RenewAt.Sub(q.now)
	}
	return one
}

// change installs or upgrades an add-on.
func (q delivery) change(ctx context.Context, t *turn) addonResult {
	a, record, status, installed := t.addon, t.record, t.status, t.facts.Installed
	target, err := q.workload.As(a.Spec.ServiceAccountName)
	if err != nil {
		return requestFailed(err, q.previousStatus(status))
	}
	outcome, err := q.Deliverer.Ensure(ctx, target, q.desired(t.in))
	action := actionUpgrade
	if !installed {
		action = actionInstall
	}
	countDelivery(action, outcome, err)
	q.proofs.Note(a.Release(), outcome.Proof)
	q.memory.of(a.Release()).time(outcome.Phase, q.now, q.Clock.Now())
	if outcome.Recorded && !installed {
		q.memory.installs.Next(a.Release().String(), q.now)
	}
	if err != nil {
		return upgradeFailed(err, q.previousStatus(status))
	}
	if outcome.Phase == addonsv1.AddonReady && mayBringKinds(q.wanted, a, record.Kinds, outcome.Kinds) {
		q.workload.Conn.InvalidateFacts() // other charts may ask about them
	}
	one := delivered(outcome, status)
	if pause := q.memory.installs.Get(a.Release().String()); !installed && pause > retry.Install.First && one.status.Phase == addonsv1.AddonReady {
		return recordLost(a, one.status, pause) // until the watch shows the record
	}
	if !installed { // a cluster that never shows the record would have an add-on that is Ready for ever
		one.retryAfter = retry.Sooner(one.retryAfter, retry.Record)
	}
	return one
}

// recordLost returns the result of an add-on whose records don't stay, and that is installed again after the pause.
func recordLost(a *wanted.Addon, status addonsv1.AddonStatus, pause time.Duration) addonResult {
	one := because(status, reasons.RecordLost, fmt.Sprintf("Its release record in namespace %s of the cluster is gone after each installation; "+
		"see what deletes Secrets with the label owner=helm there. It is installed again after a while", a.Release().Namespace))
	one.retryAfter = pause
	return one
}

// goBack delivers an earlier record of an add-on whose values were replaced, if one has the values of the revision.
func (q delivery) goBack(ctx context.Context, t *turn) addonResult {
	one := q.change(ctx, t)
	if one.status.Reason == deliver.ReasonInputReplaced {
		one.status.Message = shorten(t.err.Error() + ". No release record has the previous ones: put them back, or change the AddonStack")
	}
	return one
}

// inputFailed returns the result of an add-on whose inputs can't be had.
func (q delivery) inputFailed(t *turn) addonResult {
	failed, ok := errors.AsType[*failure.Error](t.err)
	if !ok {
		return requestFailed(t.err, q.previousStatus(t.status))
	}
	one := because(t.status, failed.Reason, failed.Error())
	if failed.Wait {
		one.status.Phase = addonsv1.AddonPending
	}
	if one.retryAfter = failed.RetryAfter; failed.RetryAfter <= 0 && reasons.Of(failed.Reason).Is(reasons.Retried) {
		one.err = fmt.Errorf("add-on %s: %w", t.addon.Name, t.err)
	}
	return one
}

// contain recovers from a panic and makes it the add-on's failure. It is to be deferred.
func (q delivery) contain(ctx context.Context, status addonsv1.AddonStatus, one *addonResult) {
	if value := recover(); value != nil {
		*one = because(status, deliver.ReasonInternalError, deliver.Panicked(ctx, q.workload.Name.String(), value))
		one.retryAfter = retry.Panic
	}
}

// mayBringKinds reports whether a change of an add-on may bring API kinds to the cluster, or take
// some away. The kinds of its objects tell. An operator may bring others, so dependents count, too.
func mayBringKinds(all []wanted.Addon, a *wanted.Addon, before, after string) bool {
	for kind := range strings.SplitSeq(before+","+after, ",") {
		if strings.HasSuffix(kind, "/CustomResourceDefinition") || strings.HasSuffix(kind, "/APIService") {
			return true
		}
	}
	return slices.ContainsFunc(all, func(other wanted.Addon) bool { return releases.DependsOn(other.Stack, other.DependsOn, a.Qualified()) })
}
