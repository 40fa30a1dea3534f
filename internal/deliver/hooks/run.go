// SPDX-License-Identifier: Apache-2.0

// Package hooks runs Helm's hooks of a revision.
package hooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/deletion"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// RunAnnotation on a hook's object says which run of the hook it is:
// "<revision>.<event>.<attempt>.<UID of the record>". After a restart it is waited for, not
// started again.
const RunAnnotation = "addons.cluster.x-k8s.io/hook-run"

// Hook is a hook of the revision, as it is run for an event.
type Hook struct {
	*helmrelease.Hook
	key record.HookKey
}

func of(h *helmrelease.Hook, event helmrelease.HookEvent) Hook {
	key := record.HookKey{Event: event, Kind: h.Kind, Name: h.Name}
	o := &metav1.PartialObjectMetadata{}
	if err := yaml.Unmarshal([]byte(h.Manifest), o); err == nil { // else nothing of it can be applied
		key.Where = o.GroupVersionKind().Group + "/" + o.Namespace
	}
	return Hook{h, key}
}

// Progress is known while hooks run. Losing it costs requests.
type Progress struct {
	hooks map[record.HookKey]*run
	// cleaned are the events whose hooks' objects were deleted by their policy.
	cleaned map[helmrelease.HookEvent]bool
}

// run is a hook's object as it was applied.
type run struct {
	observe.Object
	uid     types.UID
	watched bool
}

// NewProgress returns that of a revision whose hooks haven't run.
func NewProgress() *Progress {
	return &Progress{hooks: map[record.HookKey]*run{}, cleaned: map[helmrelease.HookEvent]bool{}}
}

// Runner runs the hooks of a revision.
type Runner struct {
	Record   *record.Record
	Store    *record.Store
	Progress *Progress
	Applier  apply.Applier
	// Deleter deletes what is in the place of a hook's object, unless the Keeper has it stay. Claimer applies that.
	Deleter *deletion.Deleter
	Keeper  *keep.Keeper
	Claimer *claim.Claimer
	Tracker *observe.Tracker
	// Watch begins to watch objects.
	Watch    func(...observe.Object)
	Patience outcome.Patience
	Hidden   *hidden.Secrets
	// Removes says that the add-on is removed.
	Removes bool

	// ahead are the answers to objects that were applied before the turn of their hooks.
	ahead map[record.HookKey]answer
}

// Events returns the events before and after the objects of a revision are applied, and what Helm calls that.
func Events(rec *record.Record, isUpgrade bool) (before, after helmrelease.HookEvent, operation string) {
	switch {
	case rec.IsRollback():
		return helmrelease.HookPreRollback, helmrelease.HookPostRollback, "Rollback"
	case isUpgrade:
		return helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade, "Upgrade"
	}
	return helmrelease.HookPreInstall, helmrelease.HookPostInstall, "Install"
}

// progressOf returns the progress of a hook, nil if it wasn't started.
func (r *Runner) progressOf(h Hook) *record.HookRun { return r.Record.State.Run(h.key) }

// For returns the hooks of an event in the order that Helm runs them: by
// weight, then by name; those that are equal in both by kind, in install order.
func For(hooks []*helmrelease.Hook, event helmrelease.HookEvent) []Hook {
	var matching []Hook
	for _, h := range hooks {
		if slices.Contains(h.Events, event) {
			matching = append(matching, of(h, event))
		}
	}
	slices.SortStableFunc(matching, func(a, b Hook) int {
		return cmp.Or(
			cmp.Compare(a.Weight, b.Weight),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(object.Rank(releaseutil.InstallOrder, a.Kind), object.Rank(releaseutil.InstallOrder, b.Kind)),
		)
	})
	return matching
}

// Run runs the hooks of an event, one after another. Those of one weight that run nothing begin beside each other.
func (r *Runner) Run(ctx context.Context, event helmrelease.HookEvent) (outcome.Stop, error) {
	rec := r.Record
	hooks := For(rec.Helm.Hooks, event)
	if len(hooks) == 0 || slices.Contains(rec.State.EventsDone, event.String()) {
		return outcome.Stop{}, nil
	}
	r.ahead = map[record.HookKey]answer{}
	for i, h := range hooks {
		if i == 0 || !areAlike(hooks[i-1], h) {
			r.applyAhead(ctx, alike(hooks[i:]))
		}
		if stop, err := r.runHook(ctx, h); stop.Is() || err != nil {
			return stop, err
		}
	}
	// The record says first that they are done: once they are deleted, nothing else tells. The
	// record says with its next update that they are deleted. Until then the session knows.
	cleanup := whenSucceeded(hooks)
	if len(cleanup) > 0 && !r.Progress.cleaned[event] {
		if err := r.Store.Update(ctx, rec); err != nil {
			return outcome.Stop{}, err
		}
		if err := r.deleteHooks(ctx, cleanup); err != nil {
			return outcome.Stop{}, err
		}
		r.Progress.cleaned[event] = true
	}
	rec.State.EventsDone = append(rec.State.EventsDone, event.String())
	if len(cleanup) > 0 {
		return outcome.Stop{}, nil
	}
	return outcome.Stop{}, r.Store.Update(ctx, rec)
}

// runHook starts a hook, or continues waiting for it. It isn't stopped if the hook is done. A hook that is tried again has failed,
// with the words of its last attempt, until it succeeds.
func (r *Runner) runHook(ctx context.Context, h Hook) (outcome.Stop, error) {
	progress := *cmp.Or(r.progressOf(h), &record.HookRun{})
	if progress.Phase == helmrelease.HookPhaseSucceeded {
		return outcome.Stop{}, nil
	}
	starts, attempt := progress.Phase != helmrelease.HookPhaseRunning, progress.Attempt
	if starts {
		attempt++
		delete(r.Progress.hooks, h.key)
	}
	o, err := r.ofAttempt(h, attempt)
	if err != nil {
		return r.fail(ctx, h, err.Error())
	}
	var stop outcome.Stop
	if _, ok := r.Progress.hooks[h.key]; !ok {
		stop, err = r.apply(ctx, h, o, attempt)
	}
	if !stop.Is() && err == nil {
		if starts {
			r.startRun(h)
		}
		stop, err = r.await(ctx, h, o)
	}
	if now := r.progressOf(h); stop.Kind == outcome.Waiting && now != nil && now.Message != "" {
		stop.StillFailing, stop.Reason, stop.Message = true, outcome.ReasonHookFailed, now.Message
	}
	return stop, err
}

// await looks whether a running hook is done.
func (r *Runner) await(ctx context.Context, h Hook, o *unstructured.Unstructured) (outcome.Stop, error) {
	a, progress := r.Progress.hooks[h.key], r.progressOf(h)
	status := r.statusOf(a)
	if a.watched && !status.Final && r.Tracker.Failing() != nil {
		var err error
		if status, err = r.lookAtHook(ctx, o); err != nil {
			return outcome.Stop{}, err
		}
	}
	what := fmt.Sprintf("%s hook %s %s", h.key.Event, h.Kind, a.Key)
	switch status.Phase {
	case observe.Current:
		progress.Phase, progress.Message = helmrelease.HookPhaseSucceeded, ""
		h.LastRun = helmrelease.HookExecution{StartedAt: progress.StartedAt, CompletedAt: r.Patience.Clock.Now(), Phase: progress.Phase}
		return outcome.Stop{}, nil
	case observe.Failed:
		return r.fail(ctx, h, what+": "+message.Shorten(r.Hidden.InWords(status.Message), object.MaxWords)+
			". See the logs of its pods, and correct what it needs, or the add-on's values. It is tried again")
	case observe.Gone:
		return r.fail(ctx, h, what+" was deleted before its end was seen. If it has ttlSecondsAfterFinished, raise it or leave it out; if not, see who deletes it")
	}
	if !a.watched || !r.Tracker.Live(a.Resource) {
		a.watched = true
		r.Watch(a.Object)
	}
	left := progress.StartedAt.Add(r.Patience.Deadline).Sub(r.Patience.Clock.Now())
	if left <= 0 {
		return outcome.Fail(outcome.ReasonHookFailed, fmt.Sprintf(
			"%s hasn't finished within %s: %s. It is still waited for", what, r.Patience.Deadline, status.Message), 0), nil
	}
	return outcome.Wait(outcome.ReasonRunningHook, fmt.Sprintf("Waiting for %s: %s", what, status.Message), left), nil
}

// lookAtHook reads how a hook's object stands that can't be watched at present.
func (r *Runner) lookAtHook(ctx context.Context, o *unstructured.Unstructured) (observe.Status, error) {
	live, err := r.Applier.Get(ctx, o)
	switch {
	case apierrors.IsNotFound(err), err == nil && !isRun(live, o):
		return observe.Status{Phase: observe.Gone}, nil
	case err != nil:
		return observe.Status{}, r.Hidden.FailureOf(record.KeyOf(o), err)
	}
	return readiness.HookDone(live), nil
}

// statusOf returns the newest status of a hook's object.
func (r *Runner) statusOf(a *run) observe.Status {
	if a.watched {
		if s, ok := r.Tracker.Status(a.Resource, a.Key); ok {
			return s
		}
	}
	return a.Status
}

// startRun notes a new attempt.
func (r *Runner) startRun(h Hook) *record.HookRun {
	progress := r.progressOf(h)
	if progress == nil {
		r.Record.State.Hooks = append(r.Record.State.Hooks, record.HookRun{HookKey: h.key})
		progress = &r.Record.State.Hooks[len(r.Record.State.Hooks)-1]
	}
	progress.Attempt++
	progress.Phase, progress.StartedAt = helmrelease.HookPhaseRunning, r.Patience.Clock.Now()
	h.LastRun = helmrelease.HookExecution{StartedAt: r.Patience.Clock.Now(), Phase: helmrelease.HookPhaseRunning}
	return progress
}

// whenSucceeded are the hooks that are to be deleted once they have succeeded.
func whenSucceeded(hooks []Hook) []Hook {
	return slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool {
		return !slices.Contains(h.DeletePolicies, helmrelease.HookSucceeded)
	})
}

// fail notes that a hook failed. It is tried again as a new attempt. The hooks before it are
// deleted by their policy, as in Helm. Hooks that don't run, such as ConfigMaps, are created again
// with the attempt.
func (r *Runner) fail(ctx context.Context, h Hook, message string) (outcome.Stop, error) {
	message = r.Hidden.In(message)
	progress := r.progressOf(h)
	if progress == nil {
		progress = r.startRun(h)
	}
	if r.Removes {
		message += fmt.Sprintf(". To let go of the add-on without this hook, set annotation %s of Secret %s/%s in the cluster to %s",
			record.DeletionPolicyAnnotation, r.Applier.Scope.Release.Namespace, r.Record.SecretName, addonsv1.DeletionPolicyOrphan)
	}
	progress.Phase, progress.Message = helmrelease.HookPhaseFailed, message
	all := For(r.Record.Helm.Hooks, h.key.Event)
	cleanup := whenSucceeded(all[:slices.Index(all, h)])
	for _, before := range cleanup {
		if run := r.progressOf(before); run != nil && !runs(before) {
			run.Phase = helmrelease.HookPhaseUnknown
		}
	}
	h.LastRun = helmrelease.HookExecution{StartedAt: progress.StartedAt, CompletedAt: r.Patience.Clock.Now(), Phase: progress.Phase}
	if !r.Removes {
		r.Record.MarkFailed(outcome.ReasonHookFailed, message)
	}
	if err := r.Store.Update(ctx, r.Record); err != nil { // first, as deleting them takes away what tells
		return outcome.Stop{}, err
	}
	if slices.Contains(h.DeletePolicies, helmrelease.HookFailed) {
		cleanup = append(cleanup, h)
	}
	if err := r.deleteHooks(ctx, cleanup); err != nil {
		return outcome.Stop{}, err
	}
	return outcome.Stop{Kind: outcome.Noted, Reason: outcome.ReasonHookFailed, Message: message}, nil
}
