// SPDX-License-Identifier: Apache-2.0

// Package repair brings single objects of a deployed add-on back to what the add-on applied.
package repair

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/contained"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Suspect is an object that may differ. Its manifest is nil if it is a CRD of crds/.
type Suspect struct {
	Manifest *unstructured.Unstructured
	Entry    record.Entry
	// Differs says that a watch has shown that it does.
	Differs bool
}

// Request says what to look for in a deployed add-on, and what to do about it.
type Request struct {
	record.Release
	// Proof is the proof of the record: see [record.Summary.Proof].
	Proof string
	// Newest is the name of the record's Secret, as it was seen last. That is read while the records are listed. "" for none.
	Newest string
	// Seen returns the fields of an object that the add-on owns, as a watch shows them:
	// zero if there are none. It is false if that isn't known; then the object is read.
	// Nil knows nothing.
	Seen func(record.ObjectKey) (drift.Fields, bool)
	// Values compares the values of all objects, too: a writer of this add-on that was late changes no owner.
	Values bool
	// Report leaves the objects as they are.
	Report bool
	// Adoption says what to do with an object that somebody made again.
	Adoption addonsv1.AdoptionPolicy
	// Ignore are rules for changes that stay.
	Ignore drift.Rules
	// Wait returns how long an object with these changes is left as it is; nil repairs
	// all at once. It may be called by several goroutines.
	Wait func(record.ObjectKey, []drift.Change) time.Duration
}

// Repairer compares objects of a deployed add-on with what it applied, and applies those that differ.
type Repairer struct {
	apply.Applier
	Request
	// Hide takes secrets out of a text.
	Hide func(string) string
}

// Repair looks at an object, and applies it if it isn't as it was applied. It doesn't if
// the object belongs to another now: another add-on, or the client that made it again.
func (r *Repairer) Repair(ctx context.Context, s Suspect, d *Difference) error {
	err := wait.ExponentialBackoffWithContext(ctx, retry.Race, func(ctx context.Context) (done bool, _ error) {
		err := r.tryRepair(ctx, s, d)
		s.Differs = false // by now another object may be there
		return !d.raced, err
	})
	if d.raced { // others write to it all the time: the difference says when to look again
		return nil
	}
	return err
}

func (r *Repairer) tryRepair(ctx context.Context, s Suspect, d *Difference) error {
	*d = Difference{Object: s.Entry.Key(), Applied: s.Entry.Fields, Now: s.Entry.Fields, hide: r.Hide}
	live, ahead, err := r.look(ctx, s)
	switch {
	case apierrors.IsNotFound(err):
		d.Gone, d.Now, live = true, 0, nil
	case err != nil:
		return err
	default:
		d.Now = drift.FieldsOf(live.ManagedFields, r.Scope.Manager())
	}
	switch {
	case s.Manifest == nil: // nothing says what it is to be
		return nil
	case live != nil && !r.Values && d.Now == d.Applied && d.Now != 0 && object.OwnerOf(&live.ObjectMeta) == r.Scope.Release:
		return nil // whoever saw a difference was late, or another run has repaired it
	case live != nil && live.DeletionTimestamp != nil:
		return nil // once it is gone it is made again
	}
	o := s.Manifest
	if live != nil {
		if err := r.mayRepair(ctx, live, s.Entry); err != nil {
			return err
		}
		if o, err = r.compare(ctx, s.Manifest, live, ahead, d); o == nil || err != nil {
			return err
		}
	}
	if r.Report {
		return nil
	}
	if r.Wait != nil {
		if d.Wait = r.Wait(d.Object, d.Changes); d.Wait > 0 {
			return nil
		}
	}
	return r.repairObject(ctx, o, live, d)
}

// look reads the metadata of an object. Meanwhile it asks for the dry run that comes next if the object differs.
func (r *Repairer) look(ctx context.Context, s Suspect) (live *metav1.PartialObjectMetadata, ahead *trial, err error) {
	asking, _ := contained.NewGroup(ctx)
	if s.Differs && s.Manifest != nil {
		asking.Go(func() error { ahead = r.try(ctx, s.Manifest, s.Entry.UID); return nil })
	}
	live, err = r.Metadata(ctx, s.Entry)
	_ = asking.Wait() // the trial says how it failed
	return live, ahead, err
}

// mayRepair returns why an object isn't the release's to change any more, nil if it is. A label
// that names another add-on, which has set no field, is but a change. An object that another
// client made again is adopted by policy, as in an upgrade.
func (r *Repairer) mayRepair(ctx context.Context, live *metav1.PartialObjectMetadata, entry record.Entry) error {
	owner := object.OwnerOf(&live.ObjectMeta)
	isOurs := live.UID == entry.UID || object.ManagedBy(&live.ObjectMeta, r.Scope.Manager()) // the record may be of the one before
	if isOurs && (owner == r.Scope.Release || !object.ManagedBy(&live.ObjectMeta, object.FieldManager(owner))) {
		return nil
	}
	c := object.Claimant{Release: r.Scope.Release, Key: entry.Key(), Policy: r.Adoption, Had: entry.UID != ""}
	verdict, reason, message := c.Decide(&live.ObjectMeta)
	switch {
	case verdict == object.ClaimOwn, verdict == object.ClaimAdopt && r.Report:
		return nil
	case verdict == object.ClaimAdopt:
		return r.TakeFields(ctx, live)
	case message == "": // it might be shared, or taken if it is equal: people are to see it
		reason, message = object.ReasonObjectExists, c.Exists(&live.ObjectMeta)
	}
	return object.Reject(entry.Key(), reason, message)
}

// repairObject applies an object that was changed, or is gone.
func (r *Repairer) repairObject(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata, d *Difference) error {
	var result *unstructured.Unstructured
	var err error
	if live == nil {
		d.whole = true
		result, err = r.Apply(ctx, o, false)
	} else {
		result, err = r.ApplyOwn(ctx, o, live.UID)
	}
	if err == nil {
		err = r.OwnAlone(ctx, result)
	}
	if errors.Is(err, apply.ErrAnother) {
		d.raced, d.Wait = true, retry.Moment
		return nil
	}
	if err != nil {
		return err
	}
	if live == nil && o.GroupVersionKind().GroupKind() == object.CRDKind {
		meta.MaybeResetRESTMapper(r.Scope.Mapper)
	}
	d.Repaired, d.Now = true, drift.FieldsOf(result.GetManagedFields(), r.Scope.Manager())
	return nil
}
