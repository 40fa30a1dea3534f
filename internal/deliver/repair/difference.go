// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Difference is an object that isn't as it was applied.
type Difference struct {
	Object record.ObjectKey
	// Gone says that it was deleted.
	Gone bool
	// Changes are the fields that were changed, without those that rules leave.
	Changes []drift.Change
	// Managers made the changes, as far as that is known.
	Managers []string
	// Refused says why the object can't be compared, where differences are only reported.
	Refused string
	// Repaired says that the object is as it was applied again, but for what rules leave.
	Repaired bool
	// Wait is for how long the object is left as it is.
	Wait time.Duration
	// Fields of the add-on, as they were applied, and as they are now.
	Applied, Now drift.Fields

	whole  bool         // nothing of the manifest was left out
	raced  bool         // somebody wrote to it in the same moment
	wanted drift.Fields // that the manifest sets, as far as that was found out
	hide   func(string) string
}

// Hide returns a text about the add-on's objects without its secrets, which may be in names and fields.
func (d Difference) Hide(text string) string {
	if d.hide == nil {
		return text
	}
	return d.hide(text)
}

// Differs reports whether the object is left otherwise than it is to be.
func (d Difference) Differs() bool {
	return !d.Repaired && (d.Gone || len(d.Changes) > 0 || d.Refused != "")
}

// Fields returns what the add-on's record is to have of the object's fields, and false if it has that. Records of older
// versions lack them, and the API server may count other fields by now.
func (d Difference) Fields() (drift.Fields, bool) {
	switch {
	case d.whole && !d.Differs() && d.Now != 0 && d.Now != d.Applied:
		return d.Now, true
	case d.Applied == 0 && d.wanted != 0: // and left otherwise
		return d.wanted, true
	}
	return 0, false
}

// trial is the answer to a dry run.
type trial struct {
	applied *unstructured.Unstructured
	rolled  bool
	err     error
}

// try asks for a dry run of an object that has the UID.
func (r *Repairer) try(ctx context.Context, o *unstructured.Unstructured, uid types.UID) *trial {
	applied, rolled, err := r.DryRun(ctx, o, uid)
	return &trial{applied, rolled, err}
}

// compare finds out what was changed of an object, by a dry run, and notes it. The dry run may have been asked for before. It
// returns what is to be applied: the manifest without what rules leave to others, nil for nothing.
func (r *Repairer) compare(
	ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata, ahead *trial, d *Difference,
) (*unstructured.Unstructured, error) {
	if ahead == nil || object.OwnerOf(&live.ObjectMeta) != r.Scope.Release { // it may be taken over since
		ahead = r.try(ctx, o, live.UID)
	}
	applied, err := ahead.applied, ahead.err
	if errors.Is(err, apply.ErrAnother) {
		d.raced, d.Wait = true, retry.Moment
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	changes := r.ChangesBy(applied, ahead.rolled, live)
	if r.Values {
		now, err := r.Get(ctx, applied)
		if err != nil {
			return nil, err
		}
		changes = append(changes, drift.Stale(now.Object, applied, r.Scope.Manager(), changes)...)
	}
	d.wanted = drift.FieldsOf(applied.GetManagedFields(), r.Scope.Manager())
	rules := r.Ignore.For(o)
	ignored, rest := rules.Split(o, changes)
	if r.Report {
		if rest, err = r.Differing(ctx, rest, applied); err != nil {
			return nil, err
		}
	}
	d.Changes, d.Managers = rest, drift.ManagersOf(rest, live.ManagedFields, r.Scope.Manager())
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
