// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// stopped ends a call early, with its outcome. To all code between it is an error.
type stopped struct{ Outcome }

// settled drops the session of an add-on that needs nothing any more, and returns the outcome.
func (r *call) settled(o Outcome) Outcome {
	r.s.tracker.Stop()
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.d.sessions[r.s.key] == r.s {
		delete(r.d.sessions, r.s.key)
	}
	return o
}

// readyOutcome is that of an add-on that is installed as wanted.
func readyOutcome(s Summary) Outcome {
	return Outcome{
		Phase: addonsv1.AddonReady, Reason: ReasonReady,
		Version: s.Version, Revision: int32(s.Revision), Kinds: s.Kinds,
		Total: s.Objects, Ready: s.Objects, Message: ReadyMessage(s),
	}
}

// ReadyMessage says what is to be known of an add-on that is installed as wanted, "" if nothing is.
func ReadyMessage(s Summary) string {
	if s.Otherwise == "" {
		return ""
	}
	return fmt.Sprintf("The chart makes other annotations of pods now: of %s. The next change of the add-on brings them, so that no pod restarts before", s.Otherwise)
}

// rolledBackOutcome is that of an add-on whose upgrade failed, and which is as it was before.
func rolledBackOutcome(s Summary, now time.Time) Outcome {
	o := readyOutcome(s)
	o.Phase, o.Reason = addonsv1.AddonFailed, ReasonRolledBack
	o.Message = fmt.Sprintf("The upgrade failed and was rolled back to version %s, as revision %d. It is tried again when what is to be installed changes, or on request. It failed with %s",
		s.Version, s.Revision, s.Failure)
	if again := triesAgain(s); !again.IsZero() {
		o.RetryAfter = max(again.Sub(now), time.Second)
		o.Message = fmt.Sprintf("%s. Its certificates are to be renewed: it is tried again for that after %s", o.Message, again.UTC().Format(time.RFC3339))
	}
	return o
}

// refuse stops without a revision, until the time of the next attempt.
func (r *call) refuse(reason, message string) error {
	phase := addonsv1.AddonFailed
	if reason == ReasonReleaseLocked {
		phase = addonsv1.AddonPending
	}
	return r.refuseAs(phase, reason, message)
}

func (r *call) refuseAs(phase addonsv1.AddonPhase, reason, message string) error {
	return &stopped{r.s.backoff.fail(r.now(), r.tried(r.digest), r.refusal(phase, reason, message))}
}

// refusal is the outcome of something that stopped the call before anything was
// written, or of which nothing is known to be written: it says what is installed.
func (r *call) refusal(phase addonsv1.AddonPhase, reason, message string) Outcome {
	r.rec = nil
	return r.outcome(phase, reason, message)
}

// outcome about the revision that is being worked on.
func (r *call) outcome(phase addonsv1.AddonPhase, reason, message string) Outcome {
	return r.withRevision(Outcome{Phase: phase, Reason: reason, Message: r.hidden.in(message), Applied: r.applied, Tried: r.allTried})
}

// withRevision returns the outcome with the revision that is being worked on, or else the newest one.
func (r *call) withRevision(o Outcome) Outcome {
	revision := Summary{}
	switch {
	case r.rec != nil:
		revision = r.rec.Summary
		o.Ready = r.readyCount(revision)
		o.Untouched = len(r.s.applied) == 0 && r.rec.State != nil && !slices.ContainsFunc(r.rec.State.Inventory, record.Entry.Touched)
	case len(r.records) == 0:
		return o
	default:
		revision = r.records[0]
		if revision.Status == StatusDeployed {
			o.Ready = revision.Objects
		} else if r.s.about == (subject{revision: revision.UID}) {
			o.Ready = r.readyCount(revision)
		}
	}
	o.Version, o.Revision, o.Total = revision.Version, int32(revision.Revision), revision.Objects
	return o
}

// readyCount counts the objects of a revision that are ready. Before the first of them is
// applied these are the objects of the revision that is deployed.
func (r *call) readyCount(revision Summary) int32 {
	var n int32
	if len(r.s.applied) == 0 && r.want != nil {
		for _, s := range r.records {
			if s.Status == StatusDeployed && s.Revision < revision.Revision {
				return min(s.Objects, revision.Objects)
			}
		}
	}
	for _, a := range r.s.applied {
		if r.statusOf(a).Phase == observe.Current {
			n++
		}
	}
	return n
}

// statusOf returns the newest status of an object that was applied.
func (r *call) statusOf(a *applied) observe.Status {
	if a.watched {
		if s, ok := r.s.tracker.Status(a.Resource, a.Key); ok {
			return s
		}
	}
	return a.Status
}

func (r *call) now() time.Time { return r.d.options.Clock.Now() }

// tried identifies what an attempt is about: a change of the inputs, or of how they
// may be brought into the cluster, is worth another one at once.
func (r *call) tried(digest string) string {
	if w := r.want; w != nil {
		return fmt.Sprint(digest, w.Spec, w.Adoption, w.CreateNamespace, w.ProgressDeadline, w.OnFailure, w.Recreate, w.ServiceAccount)
	}
	if len(r.records) > 0 {
		return fmt.Sprint(digest, r.records[0].DeletionPolicy)
	}
	return digest
}

// backoff of an add-on that failed.
type backoff struct {
	digest  string // that failed
	retries int
	until   time.Time
	outcome Outcome
}

// fail returns the outcome with the time of the next attempt, and remembers it.
func (b *backoff) fail(now time.Time, digest string, o Outcome) Outcome {
	if b.digest != digest {
		*b = backoff{digest: digest}
	}
	o.RetryAfter = retry.Delivery.After(b.retries)
	b.retries++
	b.until = now.Add(o.RetryAfter)
	b.outcome = o
	return o
}

// waiting returns the outcome of the last attempt while it is too early for the next.
func (b *backoff) waiting(now time.Time, digest string) (Outcome, bool) {
	if b.digest != digest || !now.Before(b.until) {
		return Outcome{}, false
	}
	o := b.outcome
	o.RetryAfter = b.until.Sub(now)
	return o, true
}

// wait stops for what an event will tell about, or the time.
func (r *call) wait(reason, message string, after time.Duration) error {
	phase := addonsv1.AddonInstalling
	switch {
	case r.removes:
		phase = addonsv1.AddonRemoving
	case r.want == nil || r.upgrading():
		phase = addonsv1.AddonUpgrading
	}
	o := r.outcome(phase, reason, message)
	o.RetryAfter = r.s.orUnwatched(after)
	return &stopped{o}
}

// orUnwatched returns when to look again, at the time given or sooner if watching doesn't work. Zero is no time.
func (s *session) orUnwatched(after time.Duration) time.Duration {
	if s.tracker.Failing() != nil {
		return retry.Sooner(after, retry.Tracker)
	}
	return after
}

// upgrading reports whether the revision, or the one that is about to be made, follows one that
// was deployed, be it of another release.
func (r *call) upgrading() bool {
	older := r.records
	if r.rec != nil {
		older = slices.DeleteFunc(slices.Clone(older), func(s Summary) bool { return s.Revision >= r.rec.Revision })
	}
	return r.adopted != nil || record.Installed(older)
}

// stopFor stops for what failed about objects, which may be nil. A rejection has the object's own reason if none is given.
// So has what doesn't come by itself within the deadline.
func (r *call) stopFor(ctx context.Context, f *object.Failure, rejection string) error {
	switch {
	case f == nil:
		return nil
	case f.Kind == object.Transient:
		return f.Unwrap()
	case r.s.isFinal(f, r.now(), r.deadline):
		return r.fail(ctx, cmp.Or(rejection, f.Reason), f.Message)
	}
	return r.wait(f.Reason, "Waiting: "+f.Message, retry.Webhook)
}

// isFinal reports whether nobody waits for an object that failed: it is rejected, or its step has waited longer than the
// deadline for what may come by itself.
func (p *progress) isFinal(f *object.Failure, now time.Time, deadline time.Duration) bool {
	if f.Kind == object.Deferred {
		p.deferredSince = cmp.Or(p.deferredSince, now)
		return now.Sub(p.deferredSince) >= deadline
	}
	return f.Kind == object.Rejected
}

// fail marks the revision failed, and stops until the time of the next attempt.
func (r *call) fail(ctx context.Context, reason, message string) error {
	err := r.failed(ctx, reason, message, 0)
	if o, ok := errors.AsType[*stopped](err); ok && o.Reason == reason { // else it is rolled back
		digest := r.rec.Digest
		if r.want != nil && r.rec.IsRollback() {
			digest = r.rec.RolledBack // which is wanted still
		}
		o.Outcome = r.s.backoff.fail(r.now(), r.tried(digest), o.Outcome)
	}
	return err
}

// failed marks the revision failed, and stops. Only an event, or a change, leads to more, unless
// there is a time to look again, as where no watch tells, or to go on with a rollback.
func (r *call) failed(ctx context.Context, reason, text string, retryAfter time.Duration) error {
	text = r.hidden.in(text)
	if r.want != nil {
		description := message.Shorten(reason+": "+text, 1024)
		if info := r.rec.Helm.Info; info.Status != helmcommon.StatusFailed || info.Description != description {
			r.markFailed(reason, text)
			if err := r.s.store.Update(ctx, r.rec); err != nil {
				return err
			}
		}
	}
	o := r.outcome(addonsv1.AddonFailed, reason, text)
	o.RetryAfter = r.s.orUnwatched(retryAfter)
	if r.want != nil && len(r.records) > 0 {
		r.records[0] = r.rec.Summary
		if to, ok := deployedBefore(r.records, r.want); ok {
			o.Phase, o.Reason, o.RetryAfter = addonsv1.AddonUpgrading, ReasonRollingBack, retry.Moment
			o.Message = fmt.Sprintf("Rolling back to revision %d: %s: %s", to.Revision, reason, text)
		}
	}
	return &stopped{o}
}

// markFailed notes in the record why the revision failed, in words without secrets.
func (r *call) markFailed(reason, text string) {
	r.rec.SetStatus(helmcommon.StatusFailed, message.Shorten(reason+": "+text, 1024))
	r.rec.Failure = message.Shorten(reason+": "+text, 512)
}
