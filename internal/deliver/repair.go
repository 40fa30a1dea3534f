// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// ObjectKey identifies an object of an add-on.
type ObjectKey = record.ObjectKey

// Repair applies objects of a deployed add-on again, all of them if none is named.
// It works from the record: nothing is rendered, so nothing changes beside what
// somebody else changed, and no revision is made. An add-on that isn't deployed is
// left to Ensure. CRDs of crds/ aren't in the record, and are not repaired.
func (d *Deliverer) Repair(ctx context.Context, t Target, release Release, only ...ObjectKey) (Outcome, error) {
	r := d.run(t, release, &Desired{Release: release, Adoption: addonsv1.AdoptionPolicyFail})
	defer r.s.mu.Unlock()
	o, err := r.contained(ctx, func(ctx context.Context) (Outcome, error) { return r.repair(ctx, only) })
	o.Wrote = r.wrote.Load()
	if err != nil {
		return o, fmt.Errorf("add-on %s: %w", release, err)
	}
	return o, nil
}

func (r *run) repair(ctx context.Context, only []ObjectKey) (Outcome, error) {
	if err := r.list(ctx); err != nil {
		return Outcome{}, err
	}
	if len(r.records) == 0 || !r.records[0].Complete || r.records[0].Status != StatusDeployed {
		return Outcome{}, nil
	}
	rec, o, err := r.load(ctx, r.records[0], r.records[0].Digest)
	if o != nil || err != nil {
		return value(o), err
	}
	objects, err := record.ParseManifest(rec.Helm.Manifest)
	if err != nil {
		return r.refuse(rec.Digest, ReasonRecordUnreadable, r.unreadable(rec.Summary, err)), nil
	}
	if objects, err = r.prepare(objects); err != nil {
		return Outcome{}, err
	}
	var failed failures
	for _, wave := range waves(objects) {
		wave = slices.DeleteFunc(wave, func(o *unstructured.Unstructured) bool {
			_, done := rec.State.JobDone(record.KeyOf(o))
			return done // and may be gone since
		})
		if len(only) > 0 {
			wave = slices.DeleteFunc(wave, func(o *unstructured.Unstructured) bool { return !slices.Contains(only, record.KeyOf(o)) })
		}
		failed = append(failed, r.inParallel(len(wave), func(i int) *failure { return r.repairOne(ctx, wave[i]) })...)
	}
	if err := failed.transient(); err != nil {
		return Outcome{}, err
	}
	ready := readyOutcome(rec.Summary)
	for _, kind := range []kindOfFailure{rejected, deferred} {
		if reason, message := failed.first(kind); reason != "" {
			ready.Phase, ready.Reason, ready.Message = addonsv1.AddonFailed, reason, message
			return r.s.backoff.fail(r.now(), rec.Digest, ready), nil
		}
	}
	r.d.settle(r.t, r.release, r.s)
	return ready, nil
}

// repairOne applies an object, unless another add-on has it now.
func (r *run) repairOne(ctx context.Context, o *unstructured.Unstructured) *failure {
	key := record.KeyOf(o)
	live, err := r.metadata(ctx, record.EntryOf(o))
	if err == nil {
		if owner := ownerOf(&live.ObjectMeta); owner != r.release && owner != (Release{}) {
			return &failure{kind: rejected, reason: ReasonOwnedByOther, message: fmt.Sprintf("%s: it belongs to add-on %s", key, owner)}
		}
	} else if !apierrors.IsNotFound(err) {
		f := classify(err, key, false)
		return &f
	}
	r.wrote.Store(true)
	if _, err := r.patch(ctx, o, true); err != nil {
		f := classify(err, key, false)
		return &f
	}
	return nil
}
