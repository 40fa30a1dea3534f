// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"

	"github.com/cluster-chandler/chandler/internal/deliver/object"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// raceRetry is when to look again at an object that others write to all the time.
const raceRetry = time.Second

// raceBackoff is how often, and with which pauses, to look again at an object that another
// client wrote to in the same moment. Most often that is a controller which takes in the
// change.
var raceBackoff = wait.Backoff{Duration: 25 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5}

// repairOne looks at an object, and applies it if it isn't as it was applied. It doesn't if
// the object belongs to another now: another add-on, or the client that made it anew.
func (r *run) repairOne(ctx context.Context, s suspect, want *Repair, d *Difference) error {
	pauses := raceBackoff
	for {
		err := r.tryRepair(ctx, s, want, d)
		if !d.raced || pauses.Steps == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pauses.Step()):
		}
	}
}

func (r *run) tryRepair(ctx context.Context, s suspect, want *Repair, d *Difference) error {
	*d = Difference{Object: s.entry.Key(), Applied: s.entry.Fields, Now: s.entry.Fields, hidden: &r.hidden}
	live, err := r.applier.Metadata(ctx, s.entry)
	switch {
	case apierrors.IsNotFound(err):
		d.Gone, d.Now, live = true, 0, nil
	case err != nil:
		return err
	default:
		d.Now = drift.FieldsOf(live.ManagedFields, object.FieldManager(r.release))
	}
	switch {
	case s.manifest == nil: // nothing says what it is to be
		return nil
	case live != nil && !want.Values && d.Now == d.Applied && d.Now != 0 && object.OwnerOf(&live.ObjectMeta) == r.release:
		return nil // whoever saw a difference was late, or another run has repaired it
	case live != nil && live.DeletionTimestamp != nil:
		return nil // once it is gone it is made anew
	}
	o := s.manifest
	if live != nil {
		if err := r.mayRepair(ctx, live, s.entry, want); err != nil {
			return err
		}
		if o, err = r.compare(ctx, s.manifest, live, want, d); o == nil || err != nil {
			return err
		}
	}
	if want.Report {
		return nil
	}
	if want.Wait != nil {
		if d.Wait = want.Wait(d.Object, d.Changes); d.Wait > 0 {
			return nil
		}
	}
	return r.repairObject(ctx, o, live, d)
}

// mayRepair returns why an object isn't the release's to change any more, nil if it is. A label
// that names another add-on, which has set no field, is but a change. An object that another
// client made anew is adopted by policy, as in an upgrade.
func (r *run) mayRepair(ctx context.Context, live *metav1.PartialObjectMetadata, entry record.Entry, want *Repair) error {
	owner := object.OwnerOf(&live.ObjectMeta)
	isOurs := live.UID == entry.UID || object.ManagedBy(&live.ObjectMeta, object.FieldManager(r.release)) // the record may be of the one before
	if isOurs && (owner == r.release || !object.ManagedBy(&live.ObjectMeta, object.FieldManager(owner))) {
		return nil
	}
	c := object.Claimant{Release: r.release, Key: entry.Key(), Policy: r.want.Adoption, Had: entry.UID != ""}
	verdict, reason, message := c.Decide(&live.ObjectMeta)
	switch {
	case verdict == object.ClaimOwn, verdict == object.ClaimAdopt && want.Report:
		return nil
	case verdict == object.ClaimAdopt:
		return r.applier.TakeFields(ctx, live)
	case message == "": // it might be shared, or taken if it is equal: people are to see it
		reason, message = object.ReasonObjectExists, c.Exists(&live.ObjectMeta)
	}
	return object.Reject(entry.Key(), reason, message)
}

// compare finds out what was changed of an object, by a dry run, and notes it. It returns what
// is to be applied: the manifest without what rules leave to others, nil for nothing.
func (r *run) compare(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata, want *Repair, d *Difference) (*unstructured.Unstructured, error) {
	changes, applied, err := r.applier.Changes(ctx, o, live)
	if apierrors.IsInvalid(err) && !want.Report {
		if d.displaced = drift.Replacements(o, live.ManagedFields, object.FieldManager(r.release)); len(d.displaced) > 0 {
			changes, err, applied = d.displaced[0].Changes, nil, o
		}
	}
	if errors.Is(err, apply.ErrAnother) {
		d.raced, d.Wait = true, raceRetry
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if want.Values && d.displaced == nil {
		now, err := r.applier.Get(ctx, applied)
		if err != nil {
			return nil, err
		}
		changes = append(changes, drift.Stale(now.Object, applied, object.FieldManager(r.release), changes)...)
	}
	d.wanted = drift.FieldsOf(applied.GetManagedFields(), object.FieldManager(r.release))
	rules := want.Ignore.For(o)
	ignored, rest := rules.Split(o, changes)
	if want.Report {
		if rest, err = r.applier.Differing(ctx, rest, applied); err != nil {
			return nil, err
		}
	}
	d.Changes, d.Managers = rest, drift.ManagersOf(rest, live.ManagedFields, object.FieldManager(r.release))
	d.whole = len(ignored) == 0
	if len(rest) == 0 && (!d.whole || d.wanted == d.Now) {
		d.Managers = nil
		return nil, nil
	}
	if len(rules) > 0 {
		o = drift.Without(o, ignored)
		o.SetResourceVersion(live.ResourceVersion) // else it might take back what somebody takes now
	}
	return o, nil
}

// repairObject applies an object that was changed, or is gone.
func (r *run) repairObject(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata, d *Difference) error {
	r.wrote.Store(true)
	var result *unstructured.Unstructured
	var err error
	if live == nil {
		d.whole = true
		result, err = r.applier.Apply(ctx, o, false)
	} else {
		result, err = r.applier.ApplyDisplacing(ctx, o, live, d.displaced)
	}
	if err == nil {
		err = r.applier.OwnAlone(ctx, result)
	}
	if errors.Is(err, apply.ErrAnother) {
		d.raced, d.Wait = true, raceRetry
		return nil
	}
	if err != nil {
		return err
	}
	if live == nil && o.GroupVersionKind().GroupKind() == object.CRDKind {
		meta.MaybeResetRESTMapper(r.scope.Mapper)
	}
	d.Repaired, d.Now = true, drift.FieldsOf(result.GetManagedFields(), object.FieldManager(r.release))
	return nil
}

// noteFields brings the record up to date with the fields of objects that are as the manifest
// says. Records of older versions lack them, and the API server may count other fields by
// now.
func (r *run) noteFields(ctx context.Context, rec *record.Record, found []Difference) error {
	now := map[record.ObjectKey]drift.Fields{}
	for _, d := range found {
		switch {
		case d.whole && !d.Differs() && d.Now != 0 && d.Now != d.Applied:
			now[d.Object] = d.Now
		case d.Applied == 0 && d.wanted != 0: // and left otherwise
			now[d.Object] = d.wanted
		}
	}
	if len(now) == 0 && rec.Applied != "" {
		return nil
	}
	inventory, err := r.scope.InventoryOf(rec)
	if err != nil {
		return err
	}
	for i := range inventory {
		if fields, ok := now[inventory[i].Key()]; ok {
			inventory[i].Fields = fields
		}
	}
	r.rec = rec
	rec.State.Inventory, rec.Applied = inventory, record.SumsOf(inventory).String()
	return r.update(ctx)
}
