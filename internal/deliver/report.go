// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/ready"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
)

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
	if again := revision.TriesAgain(s); !again.IsZero() {
		o.RetryAfter = max(again.Sub(now), time.Second)
		o.Message = fmt.Sprintf("%s. Its certificates are to be renewed: it is tried again for that after %s", o.Message, again.UTC().Format(time.RFC3339))
	}
	return o
}

// refused returns the outcome of something that stopped the call before anything was
// written, or of which nothing is known to be written: it says what is installed. It has the time of the next attempt.
func (r *call) refused(e *failure.Error) Outcome {
	phase := addonsv1.AddonFailed
	if e.Wait {
		phase = addonsv1.AddonPending
	}
	r.rec = nil
	o := r.outcome(phase, e.Reason, e.Error())
	switch {
	case e.RetryAfter > 0: // the source keeps its own backoff, which all clusters share
		o.RetryAfter = e.RetryAfter
	case e.Reason != ReasonInputReplaced: // of which an event tells
		return r.s.backoff.fail(r.now(), attemptOf(r.want, r.past.Records, r.digest), o)
	}
	return o
}

// ended returns the outcome of a step that isn't done, unless there is an error. The record of a revision that has failed says so
// from then on.
func (r *call) ended(ctx context.Context, stop outcome.Stop, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	switch stop.Kind {
	case outcome.Waiting:
		o := r.outcome(phaseOf(stop, r.removes, r.want == nil || r.past.IsUpgrade(r.rec)), stop.Reason, stop.Message)
		o.RetryAfter = r.s.orUnwatched(stop.After)
		return o, nil
	case outcome.Noted:
		return r.s.backoff.fail(r.now(), attemptOf(r.want, r.past.Records, r.rec.Digest), r.outcome(addonsv1.AddonFailed, stop.Reason, stop.Message)), nil
	}
	text := r.past.Hidden.In(stop.Message)
	o := r.outcome(addonsv1.AddonFailed, stop.Reason, text)
	o.RetryAfter = r.s.orUnwatched(stop.After)
	digest := r.rec.Digest
	if r.want != nil {
		was := *r.rec.Helm.Info
		if r.rec.MarkFailed(stop.Reason, text); was.Status != r.rec.Helm.Info.Status || was.Description != r.rec.Helm.Info.Description {
			if err := r.past.Store.Update(ctx, r.rec); err != nil {
				return Outcome{}, err
			}
		}
		if r.rec.IsRollback() {
			digest = r.rec.RolledBack // which is wanted still
		}
		if len(r.past.Records) > 0 {
			r.past.Records[0] = r.rec.Summary
			if to, ok := revision.DeployedBefore(r.past.Records, r.want); ok {
				o.Phase, o.Reason, o.RetryAfter = addonsv1.AddonUpgrading, ReasonRollingBack, retry.Moment
				o.Message = fmt.Sprintf("Rolling back to revision %d: %s: %s", to.Revision, stop.Reason, text)
				return o, nil
			}
		}
	}
	if stop.Kind == outcome.Retried {
		return r.s.backoff.fail(r.now(), attemptOf(r.want, r.past.Records, digest), o), nil
	}
	return o, nil
}

// outcome returns that of the revision that is being worked on, or else of the newest one.
func (r *call) outcome(phase addonsv1.AddonPhase, reason, message string) Outcome {
	o := Outcome{Phase: phase, Reason: reason, Message: r.past.Hidden.In(message), Applied: r.applied, Tried: r.tried}
	newest := Summary{}
	switch {
	case r.rec != nil:
		newest = r.rec.Summary
		o.Ready = readyCount(r.s.applied, r.want, r.past.Records, newest)
		o.Untouched = r.s.applied.IsEmpty() && r.rec.State != nil && !slices.ContainsFunc(r.rec.State.Inventory, record.Entry.Touched)
	case len(r.past.Records) == 0:
		return o
	default:
		newest = r.past.Records[0]
		if newest.Status == StatusDeployed {
			o.Ready = newest.Objects
		} else if r.s.about == (subject{revision: newest.UID}) {
			o.Ready = readyCount(r.s.applied, r.want, r.past.Records, newest)
		}
	}
	o.Version, o.Revision, o.Total = newest.Version, int32(newest.Revision), newest.Objects
	return o
}

func (r *call) now() time.Time { return r.d.options.Clock.Now() }

// phaseOf returns that of an add-on that waits.
func phaseOf(stop outcome.Stop, removes, isUpgrade bool) addonsv1.AddonPhase {
	switch {
	case stop.StillFailing:
		return addonsv1.AddonFailed
	case removes:
		return addonsv1.AddonRemoving
	case isUpgrade:
		return addonsv1.AddonUpgrading
	}
	return addonsv1.AddonInstalling
}

// readyCount counts the objects of a revision that are ready. Before the first of them is
// applied these are the objects of the revision that is deployed.
func readyCount(applied *ready.Objects, want *Desired, records []Summary, revision Summary) int32 {
	if applied.IsEmpty() && want != nil {
		for _, s := range records {
			if s.Status == StatusDeployed && s.Revision < revision.Revision {
				return min(s.Objects, revision.Objects)
			}
		}
	}
	return applied.Ready()
}

// attemptOf identifies what an attempt is about: a change of the inputs, or of how they
// may be brought into the cluster, is worth another one at once.
func attemptOf(w *Desired, records []Summary, digest string) string {
	if w != nil {
		return fmt.Sprint(digest, w.Spec, w.Adoption, w.CreateNamespace, w.ProgressDeadline, w.OnFailure, w.Recreate, w.ServiceAccount)
	}
	if len(records) > 0 {
		return fmt.Sprint(digest, records[0].DeletionPolicy)
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

// orUnwatched returns when to look again, at the time given or sooner if watching doesn't work. Zero is no time.
func (s *session) orUnwatched(after time.Duration) time.Duration {
	if s.tracker.Failing() != nil {
		return retry.Sooner(after, retry.Tracker)
	}
	return after
}
