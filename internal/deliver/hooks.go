// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// HookRunAnnotation on a hook's object says which run of the hook it is:
// "<revision>.<event>.<attempt>.<UID of the record>". After a restart it is waited for, not
// started again.
const HookRunAnnotation = "addons.cluster.x-k8s.io/hook-run"

// hook is a hook of the revision, as it is run for an event.
type hook struct {
	*helmrelease.Hook
	key record.HookKey
}

func hookOf(h *helmrelease.Hook, event helmrelease.HookEvent) hook {
	key := record.HookKey{Event: event, Kind: h.Kind, Name: h.Name}
	o := &metav1.PartialObjectMetadata{}
	if err := yaml.Unmarshal([]byte(h.Manifest), o); err == nil { // else nothing of it can be applied
		key.Where = o.GroupVersionKind().Group + "/" + o.Namespace
	}
	return hook{h, key}
}

// hookRunner runs the hooks of a revision.
type hookRunner struct{ *call }

// events returns the events before and after the objects of the revision are applied, and what Helm calls that.
func (r hookRunner) events() (before, after helmrelease.HookEvent, operation string) {
	switch {
	case r.rec.IsRollback():
		return helmrelease.HookPreRollback, helmrelease.HookPostRollback, "Rollback"
	case r.upgrading():
		return helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade, "Upgrade"
	}
	return helmrelease.HookPreInstall, helmrelease.HookPostInstall, "Install"
}

// progressOf returns the progress of a hook, nil if it wasn't started.
func (r hookRunner) progressOf(h hook) *record.HookRun { return r.rec.State.Run(h.key) }

// hooksFor returns the hooks of an event in the order that Helm runs them: by
// weight, then by name; those that are equal in both by kind, in install order.
func hooksFor(hooks []*helmrelease.Hook, event helmrelease.HookEvent) []hook {
	var matching []hook
	for _, h := range hooks {
		if slices.Contains(h.Events, event) {
			matching = append(matching, hookOf(h, event))
		}
	}
	slices.SortStableFunc(matching, func(a, b hook) int {
		return cmp.Or(
			cmp.Compare(a.Weight, b.Weight),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(object.Rank(releaseutil.InstallOrder, a.Kind), object.Rank(releaseutil.InstallOrder, b.Kind)),
		)
	})
	return matching
}

// runHooks runs the hooks of an event, one after another.
func (r hookRunner) runHooks(ctx context.Context, event helmrelease.HookEvent) error {
	hooks := hooksFor(r.rec.Helm.Hooks, event)
	if len(hooks) == 0 || slices.Contains(r.rec.State.EventsDone, event.String()) {
		return nil
	}
	for _, h := range hooks {
		if err := r.runHook(ctx, h); err != nil {
			return err
		}
	}
	// The record says first that they are done: once they are deleted, nothing else tells. The
	// record says with its next update that they are deleted. Until then the session knows.
	cleanup := whenSucceeded(hooks)
	if len(cleanup) > 0 && !r.s.cleaned[event] {
		if err := r.s.store.Update(ctx, r.rec); err != nil {
			return err
		}
		if err := r.deleteHooks(ctx, cleanup); err != nil {
			return err
		}
		r.s.cleaned[event] = true
	}
	r.rec.State.EventsDone = append(r.rec.State.EventsDone, event.String())
	if len(cleanup) > 0 {
		return nil
	}
	return r.s.store.Update(ctx, r.rec)
}

// runHook starts a hook, or continues waiting for it. Nil means that it is done.
func (r hookRunner) runHook(ctx context.Context, h hook) error {
	progress := *cmp.Or(r.progressOf(h), &record.HookRun{})
	if progress.Phase == helmrelease.HookPhaseSucceeded {
		return nil
	}
	o, err := r.hookObject(h.Hook)
	if err != nil {
		return r.failHook(ctx, h, err.Error())
	}
	starts, attempt := progress.Phase != helmrelease.HookPhaseRunning, progress.Attempt
	if starts {
		attempt++
		delete(r.s.hooks, h.key)
	}
	annotations.AddAnnotations(o, map[string]string{
		HookRunAnnotation: fmt.Sprintf("%d.%s.%d.%s", r.rec.Revision, h.key.Event, attempt, r.rec.UID),
	})
	if _, ok := r.s.hooks[h.key]; !ok {
		if err := r.applyHook(ctx, h, o, attempt); err != nil {
			return r.stillFailed(h, err)
		}
	}
	if starts {
		r.startRun(h)
	}
	return r.stillFailed(h, r.awaitHook(ctx, h, o))
}

// stillFailed returns the outcome of a hook that is waited for. A hook that is tried again has failed, with the words
// of its last attempt, until it succeeds.
func (r hookRunner) stillFailed(h hook, err error) error {
	waits, ok := errors.AsType[*stopped](err)
	if progress := r.progressOf(h); ok && progress != nil && progress.Message != "" && waits.Phase != addonsv1.AddonFailed {
		waits.Phase, waits.Reason, waits.Message = addonsv1.AddonFailed, ReasonHookFailed, progress.Message
	}
	return err
}

// awaitHook looks whether a running hook is done.
func (r hookRunner) awaitHook(ctx context.Context, h hook, o *unstructured.Unstructured) error {
	a, progress := r.s.hooks[h.key], r.progressOf(h)
	status := r.statusOf(a)
	if a.watched && !status.Final && r.s.tracker.Failing() != nil {
		var err error
		if status, err = r.lookAtHook(ctx, o); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s hook %s %s", h.key.Event, h.Kind, a.Key)
	switch status.Phase {
	case observe.Current:
		progress.Phase, progress.Message = helmrelease.HookPhaseSucceeded, ""
		h.LastRun = helmrelease.HookExecution{StartedAt: progress.StartedAt, CompletedAt: r.now(), Phase: progress.Phase}
		return nil
	case observe.Failed:
		return r.failHook(ctx, h, what+": "+message.Shorten(r.hidden.inWords(status.Message), object.MaxWords)+
			". See the logs of its pods, and correct what it needs, or the add-on's values. It is tried again")
	case observe.Gone:
		return r.failHook(ctx, h, what+" was deleted before its end was seen. If it has ttlSecondsAfterFinished, raise it or leave it out; if not, see who deletes it")
	}
	if !a.watched || !r.s.tracker.Live(a.Resource) {
		a.watched = true
		r.s.tracker.Track(r.t.Context, r.t.Dynamic, a.Object)
	}
	left := progress.StartedAt.Add(r.deadline).Sub(r.now())
	if left <= 0 {
		return r.failed(ctx, ReasonHookFailed, fmt.Sprintf(
			"%s hasn't finished within %s: %s. It is still waited for", what, r.deadline, status.Message), 0)
	}
	return r.wait(ReasonRunningHook, fmt.Sprintf("Waiting for %s: %s", what, status.Message), left)
}

// lookAtHook reads how a hook's object stands that can't be watched at present.
func (r hookRunner) lookAtHook(ctx context.Context, o *unstructured.Unstructured) (observe.Status, error) {
	live, err := r.applier.Get(ctx, o)
	switch {
	case apierrors.IsNotFound(err), err == nil && !isRun(live, o):
		return observe.Status{Phase: observe.Gone}, nil
	case err != nil:
		return observe.Status{}, r.failureOf(record.KeyOf(o), err)
	}
	return readiness.HookDone(live), nil
}

// startRun notes a new attempt.
func (r hookRunner) startRun(h hook) *record.HookRun {
	progress := r.progressOf(h)
	if progress == nil {
		r.rec.State.Hooks = append(r.rec.State.Hooks, record.HookRun{HookKey: h.key})
		progress = &r.rec.State.Hooks[len(r.rec.State.Hooks)-1]
	}
	progress.Attempt++
	progress.Phase, progress.StartedAt = helmrelease.HookPhaseRunning, r.now()
	h.LastRun = helmrelease.HookExecution{StartedAt: r.now(), Phase: helmrelease.HookPhaseRunning}
	return progress
}

// whenSucceeded are the hooks that are to be deleted once they have succeeded.
func whenSucceeded(hooks []hook) []hook {
	return slices.DeleteFunc(slices.Clone(hooks), func(h hook) bool {
		return !slices.Contains(h.DeletePolicies, helmrelease.HookSucceeded)
	})
}

// failHook notes that a hook failed. It is tried again as a new attempt. The hooks before it are
// deleted by their policy, as in Helm. Hooks that don't run, such as ConfigMaps, are created again
// with the attempt.
func (r hookRunner) failHook(ctx context.Context, h hook, message string) error {
	message = r.hidden.in(message)
	progress := r.progressOf(h)
	if progress == nil {
		progress = r.startRun(h)
	}
	if r.removes {
		message += fmt.Sprintf(". To let go of the add-on without this hook, set annotation %s of Secret %s/%s in the cluster to %s",
			record.DeletionPolicyAnnotation, r.release.Namespace, r.rec.SecretName, addonsv1.DeletionPolicyOrphan)
	}
	progress.Phase, progress.Message = helmrelease.HookPhaseFailed, message
	all := hooksFor(r.rec.Helm.Hooks, h.key.Event)
	cleanup := whenSucceeded(all[:slices.Index(all, h)])
	for _, before := range cleanup {
		if run := r.progressOf(before); run != nil && before.Kind != "Job" && before.Kind != "Pod" {
			run.Phase = helmrelease.HookPhaseUnknown
		}
	}
	h.LastRun = helmrelease.HookExecution{StartedAt: progress.StartedAt, CompletedAt: r.now(), Phase: progress.Phase}
	if r.want != nil {
		r.markFailed(ReasonHookFailed, message)
	}
	if err := r.s.store.Update(ctx, r.rec); err != nil { // first, as deleting them takes away what tells
		return err
	}
	if slices.Contains(h.DeletePolicies, helmrelease.HookFailed) {
		cleanup = append(cleanup, h)
	}
	if err := r.deleteHooks(ctx, cleanup); err != nil {
		return err
	}
	o := r.outcome(addonsv1.AddonFailed, ReasonHookFailed, message)
	return &stopped{r.s.backoff.fail(r.now(), r.tried(r.rec.Digest), o)}
}
