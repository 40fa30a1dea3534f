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
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/shares"
)

// call is one call of Ensure, Remove or Repair: what all its steps need. Each step is a type of its own above it.
type call struct {
	history

	d         *Deliverer
	s         *session
	t         Target
	release   Release
	applier   apply.Applier
	want      *Desired      // nil in Remove and Repair
	deadline  time.Duration // of hooks, and of objects that are to be ready or gone
	removes   bool          // it is one of Remove
	calledOff bool          // it removes an adoption that never came to its end
	hidden    hidden

	digest      string         // of the inputs, or of the record that is removed
	rec         *record.Record // the revision that is being worked on
	adopted     *record.AdoptedRelease
	checks      readiness.Checks
	scope       *object.Scope
	newRevision bool // it recorded one
	applied     bool // all objects are
	allTried    bool // each object is, whatever came of it

	room      *shares.Share // nil if none was needed yet
	claimed   int           // bytes
	roomSince time.Time     // when it was granted
}

func (d *Deliverer) newCall(t Target, release Release, want *Desired, proof string) *call {
	scope := t.scopeOf(release)
	r := &call{
		d: d, s: d.session(t, release), t: t, release: release, want: want, history: history{proof: proof},
		scope: scope, applier: apply.Applier{Client: t.Client, Scope: scope}, hidden: hidden{release: release},
	}
	r.deadline = addonsv1.DefaultProgressDeadlineSeconds * time.Second
	if want != nil {
		r.deadline = want.ProgressDeadline
		r.hidden.learn(want.Sensitive...)
	}
	return r
}

func (r *call) now() time.Time { return r.d.options.Clock.Now() }

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
	o.Version, o.Revision, o.Digest, o.Total = revision.Version, int32(revision.Revision), revision.Digest, revision.Objects
	return o
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
	o.RetryAfter = after
	if err := r.s.tracker.Failing(); err != nil {
		// Watching doesn't work, so look again instead.
		o.RetryAfter = retry.Sooner(o.RetryAfter, retry.Tracker)
	}
	return &stopped{o}
}

// fail marks the revision failed, and stops until the time of the next attempt.
func (r *call) fail(ctx context.Context, reason, message string) error {
	err := r.failed(ctx, reason, message, 0)
	if o, ok := errors.AsType[*stopped](err); ok && o.RetryAfter == 0 {
		o.Outcome = r.s.backoff.fail(r.now(), r.tried(r.rec.Digest), o.Outcome)
	}
	return err
}

// stopFor stops for what failed about objects, which may be nil. A rejection has the object's own reason if none is given.
func (r *call) stopFor(ctx context.Context, f *object.Failure, rejection string) error {
	switch {
	case f == nil:
		return nil
	case f.Kind == object.Transient:
		return f.Unwrap()
	case f.Kind == object.Rejected:
		return r.fail(ctx, cmp.Or(rejection, f.Reason), f.Message)
	}
	return r.wait(f.Reason, "Waiting: "+f.Message, retry.Webhook)
}

// failed marks the revision failed, and stops. Only an event, or a change, leads to more, unless
// there is a time to look again, or to go on with a rollback.
func (r *call) failed(ctx context.Context, reason, text string, retryAfter time.Duration) error {
	text = r.hidden.in(text)
	if r.want != nil {
		description := message.Shorten(reason+": "+text, 1024)
		if info := r.rec.Helm.Info; info.Status != helmcommon.StatusFailed || info.Description != description {
			r.markFailed(reason, text)
			if err := r.update(ctx); err != nil {
				return err
			}
		}
	}
	o := r.outcome(addonsv1.AddonFailed, reason, text)
	o.RetryAfter = retryAfter
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

// update writes the record.
func (r *call) update(ctx context.Context) error {
	return r.s.store.Update(ctx, r.rec)
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

// statusOf returns the newest status of an object that was applied.
func (r *call) statusOf(a *applied) observe.Status {
	if a.watched {
		if s, ok := r.s.tracker.Status(a.Resource, a.Key); ok {
			return s
		}
	}
	return a.Status
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

// track watches objects for as long as the connection to the cluster lasts.
func (r *call) track(objects ...observe.Object) {
	r.s.tracker.Track(r.t.Context, r.t.Dynamic, objects...)
}

// dataPolicy is that of the add-on as it is wanted, or else of its record.
func (r *call) dataPolicy() addonsv1.DataPolicy {
	if r.want != nil {
		return r.want.DataPolicy
	}
	return r.rec.DataPolicy
}
