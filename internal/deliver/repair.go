// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	inventory, err := rec.Inventory()
	if err != nil {
		return r.refuse(rec.Digest, ReasonRecordUnreadable, r.unreadable(rec.Summary, err)), nil
	}
	if inventory, err = r.normalize(inventory); err != nil {
		return Outcome{}, err
	}
	known := make(map[record.ObjectKey]record.Entry, len(inventory))
	for _, e := range inventory {
		known[e.Key()] = e
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
		failed = append(failed, r.inParallel(len(wave), func(i int) *failure { return r.repairOne(ctx, wave[i], known[record.KeyOf(wave[i])]) })...)
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

// repairOne applies an object, unless somebody else has it now: another add-on, or who
// made it anew.
func (r *run) repairOne(ctx context.Context, o *unstructured.Unstructured, entry record.Entry) *failure {
	key := record.KeyOf(o)
	if entry.Shared {
		return nil // whoever owns it looks after it
	}
	fail := func(err error) *failure {
		f := classify(err, key, false)
		return &f
	}
	live, err := r.metadata(ctx, record.EntryOf(o))
	if client.IgnoreNotFound(err) != nil {
		return fail(err)
	}
	r.wrote.Store(true)
	if err != nil {
		_, err = r.patch(ctx, o, false)
	} else {
		if owner := ownerOf(&live.ObjectMeta); live.UID != entry.UID || owner != r.release && owner != (Release{}) {
			c := claimant{release: r.release, key: key, manager: r.manager, policy: r.want.Adoption}
			if verdict, reason, message := c.decide(&live.ObjectMeta); verdict != claimOwn {
				return &failure{kind: rejected, reason: reason, message: fmt.Sprintf("%s: %s", key, message)}
			}
		}
		_, err = r.patchOwn(ctx, o, live.UID)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}
