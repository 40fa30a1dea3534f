// SPDX-License-Identifier: Apache-2.0

// Package install applies the CRDs and objects of a revision, in waves.
package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/ready"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// betweenLooks is how many objects are applied before the next look whether the cluster answers: a worker is held meanwhile.
const betweenLooks = 300

// Step applies the CRDs and objects of a revision.
type Step struct {
	Policy
	Record   *record.Record
	Store    *record.Store
	Wanted   *Wanted
	Objects  *ready.Objects
	Progress *Progress
	Applier  apply.Applier
	Claimer  *claim.Claimer
	// Wait waits for CRDs, and watches what isn't ready.
	Wait *ready.Wait
	// Watch begins to watch objects.
	Watch    func(...observe.Object)
	Patience outcome.Patience
	Hidden   *hidden.Secrets
	// Yields reports whether the step is to end before the next wave, so that others can go on. Nil never does.
	Yields func() bool

	// Tried says that each object of the manifest was tried, and Applied that none was refused.
	Tried, Applied bool
}

// Policy says how objects are applied.
type Policy struct {
	Checks readiness.Checks
	// Ignore are rules for what other managers own.
	Ignore drift.Rules
	// Seen returns the fields of an object that the add-on owns, as a watch shows them; false if they aren't known.
	Seen func(record.ObjectKey) (drift.Fields, bool)
	// Recreate makes objects again of which a field is to change that can't be changed.
	Recreate bool
}

// Wanted are the objects of a revision, as they are to be applied.
type Wanted struct {
	CRDs    []*unstructured.Unstructured // of crds/
	Objects []*unstructured.Unstructured
}

// Progress is known while a revision is applied. Losing it costs requests.
type Progress struct {
	// Unscoped says that the cluster didn't know a kind of the objects yet.
	Unscoped bool
	// AsDeployed are objects which the deployed revision applied just as they are wanted now.
	AsDeployed map[record.ObjectKey]record.Entry

	mu sync.Mutex
	// recreates is the object that is deleted to be made again; none if it is zero.
	recreates      record.ObjectKey
	recreatesSince time.Time
}

// Apply applies the CRDs of crds/, or else the objects of the manifest, that aren't applied yet, wave by wave. A rejected
// object doesn't keep the others from being applied.
func (s *Step) Apply(ctx context.Context, crds bool) (outcome.Stop, error) {
	objects := s.Wanted.CRDs
	if !crds {
		if err := s.rescope(); err != nil {
			return outcome.Stop{}, err
		}
		objects = s.Wanted.Objects
	}
	inventory, err := s.Applier.Scope.Normalize(s.Record.State.Inventory) // kinds may have come since it was written
	if err != nil {
		return outcome.Stop{}, err
	}
	s.Record.State.Inventory = inventory
	if err := s.noteJobs(ctx, objects); err != nil {
		return outcome.Stop{}, err
	}
	known := make(map[record.ObjectKey]record.Entry, len(inventory))
	for _, e := range inventory {
		known[e.Key()] = e
	}
	var failed object.Failures
	begun := false
	for _, wave := range object.Waves(objects) {
		todo := s.unapplied(wave)
		if begun && len(todo) > 0 && len(failed) == 0 && s.Yields != nil && s.Yields() {
			return outcome.Wait(outcome.ReasonWaitingForObjects, fmt.Sprintf("%d of %d objects are to be applied", len(s.unapplied(objects)), len(objects)), 0), nil
		}
		begun = begun || len(todo) > 0
		if failed, err = s.applyWave(ctx, todo, known, crds, failed); err != nil {
			return outcome.Stop{}, err
		}
		if wave[0].GroupVersionKind().GroupKind() != object.CRDKind {
			continue
		}
		if len(todo) > 0 {
			meta.MaybeResetRESTMapper(s.Applier.Scope.Mapper)
		}
		if stop := s.Wait.Established(wave, failed); stop.Is() {
			return stop, nil
		}
	}
	s.Tried = !crds
	f := failed.Worst()
	s.Applied = !crds && f == nil
	if f == nil || f.Kind != object.Deferred {
		return s.Patience.StopFor(f, "")
	}
	return s.deferred(f), nil
}

// applyWave applies objects beside each other, and returns what failed with what did before. The error is a transient one.
func (s *Step) applyWave(
	ctx context.Context, objects []*unstructured.Unstructured, known map[record.ObjectKey]record.Entry, crds bool, failed object.Failures,
) (object.Failures, error) {
	for some := range slices.Chunk(objects, betweenLooks) {
		failed = append(failed, object.InParallel(len(some), func(i int) *object.Failure {
			key := record.KeyOf(some[i])
			return s.Hidden.FailureOf(key, s.applyOne(ctx, some[i], known[key], crds))
		})...)
		if f := failed.Worst(); f != nil && f.Kind == object.Transient {
			return nil, f.Unwrap()
		}
	}
	return failed, nil
}

// rescope prepares the objects again if the cluster didn't know all of their kinds before.
// A CRD of a hook, or of another add-on, may have said since that a kind isn't
// namespaced.
func (s *Step) rescope() error {
	if !s.Progress.Unscoped {
		return nil
	}
	s.Applier.Scope.Unknown = false
	objects, err := s.Applier.Scope.Prepare(s.Wanted.Objects)
	if err != nil {
		return err
	}
	s.Wanted.Objects, s.Progress.Unscoped = objects, s.Applier.Scope.Unknown
	return nil
}

// noteJobs records the Jobs of the manifest that ran to their end. Nothing else tells of it
// once they are gone by their ttlSecondsAfterFinished, and each is to run once for a revision.
func (s *Step) noteJobs(ctx context.Context, objects []*unstructured.Unstructured) error {
	known := len(s.Record.State.JobsDone)
	for _, o := range objects {
		key := record.KeyOf(o)
		if !readiness.IsJob(o) {
			continue
		}
		a, ok := s.Objects.Get(key)
		if !ok || a.Left {
			continue
		}
		_, noted := s.Record.State.JobDone(key)
		if status := s.Objects.StatusOf(a); !noted && status.Final && status.Phase == observe.Current {
			e := record.EntryOf(o)
			e.UID = a.UID
			s.Record.State.JobsDone = append(s.Record.State.JobsDone, e)
		}
	}
	if len(s.Record.State.JobsDone) == known {
		return nil
	}
	return s.Store.Update(ctx, s.Record)
}

// jobDone is the status of a Job that is known from the record to have run to its end.
var jobDone = observe.Status{Phase: observe.Current, Final: true, Message: "it ran to its end"}

// unapplied returns the objects that weren't applied in this session, or are gone
// since.
func (s *Step) unapplied(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var todo []*unstructured.Unstructured
	for _, o := range objects {
		key := record.KeyOf(o)
		_, ok := s.Objects.Get(key)
		if job, isDone := s.Record.State.JobDone(key); !ok && isDone {
			s.Objects.Note(key, &ready.Applied{UID: job.UID, Object: observe.Object{Status: jobDone}})
			ok = true
		}
		if !ok {
			todo = append(todo, o)
		}
	}
	return todo
}

// applyOne applies an object, if it is ours to apply. The server tells whether that is so: what is
// new mustn't be there, and what was applied before has to have its UID.
func (s *Step) applyOne(ctx context.Context, o *unstructured.Unstructured, entry record.Entry, crd bool) error {
	key := record.KeyOf(o)
	if key.Name == "" {
		return &object.Failure{Kind: object.Rejected, Reason: object.ReasonObjectRejected, Message: fmt.Sprintf("A %s has no name", key.Kind)}
	}
	if left, err := s.leaveAsDeployed(ctx, o); left {
		return err
	}
	o, whole, err := s.Applier.WithoutIgnored(ctx, o, entry, s.Ignore)
	if err != nil {
		return err
	}
	result, left, err := s.Claimer.Apply(ctx, o, entry, crd)
	if err != nil {
		return s.orRecreate(ctx, o, err)
	}
	return s.noteApplied(o, result, left, whole)
}

// leaveAsDeployed reports whether an object stays as the deployed revision applied it, as nobody
// has changed it since. It is read, unless a watch shows it and it has no status to wait for. A CRD of crds/ is served
// since that revision.
func (s *Step) leaveAsDeployed(ctx context.Context, o *unstructured.Unstructured) (left bool, _ error) {
	key := record.KeyOf(o)
	e, same := s.Progress.AsDeployed[key]
	if !same {
		return false, nil
	}
	if s.Seen != nil && (e.CRD || readiness.IsReadyOnceThere(o)) && len(s.Checks.For(o)) == 0 {
		if seen, known := s.Seen(key); known && seen == e.Fields {
			current := observe.Object{Status: observe.Status{Phase: observe.Current}}
			s.note(key, &ready.Applied{Object: current, UID: e.UID, Fields: e.Fields})
			return true, nil
		}
	}
	live, err := s.Applier.Get(ctx, o)
	if err != nil {
		return false, nil //nolint:nilerr // applying it tells what is wrong
	}
	if live.GetUID() != e.UID || live.GetDeletionTimestamp() != nil || drift.FieldsOf(live.GetManagedFields(), s.Applier.Scope.Manager()) != e.Fields {
		return false, nil
	}
	return true, s.noteApplied(o, live, false, 0)
}

// noteApplied remembers what became of an object. Fields are the add-on's, zero for those that it owns now.
func (s *Step) noteApplied(o, result *unstructured.Unstructured, left bool, fields drift.Fields) error {
	watched, err := s.Applier.Scope.Observed(o, result, s.Checks.For(o).Evaluate())
	if err != nil {
		return err
	}
	if left {
		watched.Status.Phase = observe.Current // whoever owns it manages it
	}
	s.note(record.KeyOf(o), &ready.Applied{
		Object: watched, UID: result.GetUID(), Left: left,
		Fields: cmp.Or(fields, drift.FieldsOf(result.GetManagedFields(), s.Applier.Scope.Manager())),
	})
	return nil
}

func (s *Step) note(key record.ObjectKey, a *ready.Applied) {
	s.Progress.mu.Lock()
	if s.Progress.recreates == key {
		s.Progress.recreates = record.ObjectKey{}
	}
	s.Progress.mu.Unlock()
	s.Objects.Note(key, a)
}

// deferred waits for what may come by itself, such as the add-on's own webhook,
// until the deadline.
func (s *Step) deferred(f *object.Failure) outcome.Stop {
	since := s.Record.Helm.Info.LastDeployed
	if f.Reason == object.ReasonWaitingForDeletion && s.Progress.recreatesSince.After(since) {
		since = s.Progress.recreatesSince // to be made again
	}
	if s.Patience.Clock.Now().After(since.Add(s.Patience.Deadline)) {
		return outcome.Stop{Kind: outcome.Retried, Reason: f.Reason, Message: f.Message}
	}
	s.Wait.WatchUnready(s.Wanted.Objects)
	after := retry.Webhook
	if f.Reason == object.ReasonWaitingForCRDs {
		after = retry.Moment
	}
	return outcome.Wait(f.Reason, "Waiting: "+f.Message, after)
}
