// SPDX-License-Identifier: Apache-2.0

package delivery

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
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// act does a step. After that it repairs what others changed of an installed add-on, and evaluates its health.
func (q Delivery) act(ctx context.Context, t *turn, step decide.WantedStep) result.Addon {
	switch step {
	case decide.KeepWanted:
		return result.Addon{Status: q.previous(t.status), FollowUp: t.written.FollowUp}
	case decide.RefuseTaken:
		t.status = t.addon.Status() // the record is another one's
		return q.stay(t, step)
	case decide.RefuseAccount:
		return q.stay(t, step)
	}
	one := q.proceed(ctx, t, step)
	came := q.cameOf(ctx, t, step, one.Status)
	one.Status.Drift = q.previous(one.Status).Drift
	repairFailed, err := q.repairs(t.addon).Correct(ctx, t.record, &one)
	if came.RepairFailed = repairFailed; err != nil {
		failed := result.RequestFailed(err, one.Status)
		came.Said, one.FollowUp = result.SaidIn(failed.Status), one.And(failed.FollowUp)
	}
	if came.Say().Phase == addonsv1.AddonReady {
		came.Degraded = q.health(t.addon).Look(ctx, t.record, t.in, &one)
	}
	if t.written.Err != nil { // a removal would go by the previous terms
		unwritten := result.SaidIn(t.written.Status)
		came.TermsUnwritten = &unwritten
	}
	one.Say(came.Say())
	one.FollowUp = one.And(t.written.FollowUp)
	return one
}

// cameOf gathers the facts about an add-on after a step.
func (q Delivery) cameOf(ctx context.Context, t *turn, step decide.WantedStep, status addonsv1.AddonStatus) decide.Came {
	of := stack.StatusOf(&q.ClusterAddon.Status, t.addon.Stack)
	came := decide.Came{
		Step: step, Said: result.SaidIn(status), Was: result.SaidIn(q.previous(t.status)),
		SameRevision: of.Name != "" && of.Revision == stack.AssignedRevision(q.ClusterAddon.Spec.Stacks, t.addon.Stack),
		HasTurn:      !of.InputsChanged.IsZero(),
		AsWanted:     t.addon.IsInstalledAs(t.record),
	}
	if came.AsWanted && reasons.Of(came.Said.Reason).Is(reasons.SourceFailed) {
		came.SameInputs = q.hasInputs(ctx, t.addon, t.record)
	}
	return came
}

// hasInputs reports whether the record is of the add-on's inputs, with the artifact that the record names.
func (q Delivery) hasInputs(ctx context.Context, a *wanted.Addon, record deliver.Summary) bool {
	in := &inputs.Inputs{Addon: a, Chart: a.Reference(q.ClusterAddon.Namespace), Artifact: record.Artifact}
	if err := q.Inputs.ReadValues(ctx, in, record); err != nil {
		return false
	}
	same, err := q.Renderer.Settled(ctx, in, record)
	return same && err == nil
}

// proceed does a step of an add-on whose inputs were compared.
func (q Delivery) proceed(ctx context.Context, t *turn, step decide.WantedStep) result.Addon {
	switch step {
	case decide.ReportUnreadable:
		return q.inputFailed(t)
	case decide.AwaitPostcondition:
		return awaitPostcondition(t.addon, t.unmet, t.status)
	case decide.Settle:
		return q.settle(t)
	case decide.RetryPrecondition:
		return result.RequestFailed(t.err, q.previous(t.status))
	case decide.AwaitRecord:
		return recordLost(t.addon, t.status, q.Memory.InstallPause(t.addon.Release(), q.Now))
	case decide.GoBack:
		return q.goBack(ctx, t)
	case decide.Deliver:
		return q.change(ctx, t)
	}
	return q.stay(t, step)
}

// stay leaves an add-on as it is, and says why.
func (q Delivery) stay(t *turn, step decide.WantedStep) result.Addon {
	reason, text := deliver.ReasonInputReplaced, ""
	switch step {
	case decide.RefuseTaken:
		reason, text = reasons.ReleaseTaken, fmt.Sprintf("AddonStack %s has an add-on %s in namespace %s already; change spec.addons[].name or namespace of one of them",
			t.holder, t.addon.Name, t.status.Namespace)
	case decide.RefuseAccount:
		reason, text = reasons.ServiceAccountRequired, result.WithoutServiceAccount
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
		reason, text = reasons.WaitingForDependency, describeMissing(q.Observed, t.addon, t.missing)
	case decide.AwaitPrecondition:
		reason, text = cmp.Or(t.unmet.Reason, reasons.WaitingForPrecondition), t.unmet.Message
	default: // ReportReplaced, KeepReplaced
		text = t.err.Error()
	}
	one := result.Because(t.status, reason, text)
	if step == decide.AwaitPrecondition {
		one.RetryAfter = t.unmet.RetryAfter
	}
	return one
}

// settle returns the result of an add-on that is installed as wanted.
func (q Delivery) settle(t *turn) result.Addon {
	one := result.Addon{Status: t.status}
	one.Status.Phase, one.Status.Message = addonsv1.AddonReady, cmp.Or(missingDependency(q.Observed, t.addon), result.Shorten(deliver.ReadyMessage(t.record)))
	if !t.record.RenewAt.IsZero() {
		one.RetryAfter = t.record.RenewAt.Sub(q.Now)
	}
	return one
}

// change installs or upgrades an add-on.
func (q Delivery) change(ctx context.Context, t *turn) result.Addon {
	a, record, status, installed := t.addon, t.record, t.status, t.facts.Installed
	target, err := q.Workload.As(a.Spec.ServiceAccountName)
	if err != nil {
		return result.RequestFailed(err, q.previous(status))
	}
	want := q.desired(t.in)
	want.Newest, want.Installs, want.Yields = record.SecretName, q.installs, q.woken
	outcome, err := q.Deliverer.Ensure(ctx, target, want)
	action := result.Upgrade
	if !installed {
		action = result.Install
	}
	var did result.Deeds
	did.Delivers(action, outcome, err)
	q.Proofs.Note(a.Release(), outcome.Proof)
	if took, isReady := q.Memory.Of(a.Release()).Took(outcome.Phase, q.Now, q.Clock.Now()); isReady {
		did.ReadyAfter = append(did.ReadyAfter, took)
	}
	if recorded := outcome.Recorded; recorded != nil {
		did.Changed(status, q.causeOf(ctx, t, recorded), record.Version, recorded.Version, recorded.Revision)
		if !installed {
			q.Memory.Installs.Next(a.Release().String(), q.Now)
		}
	}
	var one result.Addon
	switch pause := q.Memory.Installs.Get(a.Release().String()); {
	case err != nil:
		one = result.UpgradeFailed(err, q.previous(status))
	case !installed && pause > retry.Install.First && outcome.Phase == addonsv1.AddonReady:
		one = recordLost(a, result.Delivered(outcome, status).Status, pause) // until the watch shows the record
	default:
		one = result.Delivered(outcome, status)
		if !installed { // a cluster that never shows the record would have an add-on that is Ready for ever
			one.RetryAfter = retry.Sooner(one.RetryAfter, retry.Record)
		}
	}
	if err == nil && outcome.Phase == addonsv1.AddonReady && MayBringKinds(q.Wanted, a, record.Kinds, outcome.Kinds) {
		q.Workload.Conn.InvalidateFacts() // other charts may ask about them
	}
	one.Deeds = did
	return one
}

// recordLost returns the result of an add-on whose records don't stay, and that is installed again after the pause.
func recordLost(a *wanted.Addon, status addonsv1.AddonStatus, pause time.Duration) result.Addon {
	one := result.Because(status, reasons.RecordLost, fmt.Sprintf("Its release record in namespace %s of the cluster is gone after each installation; "+
		"see what deletes Secrets with the label owner=helm there. It is installed again after a while", a.Release().Namespace))
	one.RetryAfter = pause
	return one
}

// goBack delivers an earlier record of an add-on whose values were replaced, if one has the values of the revision.
func (q Delivery) goBack(ctx context.Context, t *turn) result.Addon {
	one := q.change(ctx, t)
	if one.Status.Reason == deliver.ReasonInputReplaced {
		one.Status.Message = result.Shorten(t.err.Error() + ". No release record has the previous ones: put them back, or change the AddonStack")
	}
	return one
}

// inputFailed returns the result of an add-on whose inputs can't be had.
func (q Delivery) inputFailed(t *turn) result.Addon {
	failed, ok := errors.AsType[*failure.Error](t.err)
	if !ok {
		return result.RequestFailed(t.err, q.previous(t.status))
	}
	one := result.Because(t.status, failed.Reason, failed.Error())
	if failed.Wait {
		one.Status.Phase = addonsv1.AddonPending
	}
	if one.RetryAfter = failed.RetryAfter; failed.RetryAfter <= 0 && reasons.Of(failed.Reason).Is(reasons.Retried) {
		one.Err = fmt.Errorf("add-on %s: %w", t.addon.Name, t.err)
	}
	return one
}

// contain recovers from a panic and makes it the add-on's failure. It is to be deferred.
func contain(ctx context.Context, cluster string, status addonsv1.AddonStatus, one *result.Addon) {
	if value := recover(); value != nil {
		*one = result.Because(status, deliver.ReasonInternalError, deliver.Panicked(ctx, cluster, value))
		one.RetryAfter = retry.Panic
	}
}

// MayBringKinds reports whether a change of an add-on may bring API kinds to the cluster, or take
// some away. The kinds of its objects tell. An operator may bring others, so dependents count, too.
func MayBringKinds(all []wanted.Addon, a *wanted.Addon, before, after string) bool {
	for kind := range strings.SplitSeq(before+","+after, ",") {
		if strings.HasSuffix(kind, "/CustomResourceDefinition") || strings.HasSuffix(kind, "/APIService") {
			return true
		}
	}
	return slices.ContainsFunc(all, func(other wanted.Addon) bool { return releases.DependsOn(other.Stack, other.DependsOn, a.Qualified()) })
}

// previous returns the add-on's last status, or the given one.
func (q Delivery) previous(status addonsv1.AddonStatus) addonsv1.AddonStatus {
	return result.Previous(q.ClusterAddon.Status.Addons, status)
}
