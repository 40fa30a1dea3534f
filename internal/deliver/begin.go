// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// revisionMaker makes the next revision, and records it.
type revisionMaker struct{ *call }

// begin renders and records a new revision. Nothing of it is in the cluster yet,
// but its record says what may be from now on.
func (r revisionMaker) begin(ctx context.Context) error {
	deployed, err := r.deployedRecord(ctx)
	if err != nil {
		return err
	}
	r.previous = deployed
	made, err := r.make(ctx, r.nextRevision(), nil)
	if err != nil {
		return err
	}
	if deployed != nil && made.isUnasked && made.isAs(deployed) {
		return r.takeFacts(ctx, deployed, made.rec)
	}
	var unchanged map[record.ObjectKey]record.Entry
	if deployed != nil {
		unchanged = made.unchanged(deployed.State.CRDsDigest)
	}
	if err := r.memory.hold(ctx, -object.Weight(made.previous...)); err != nil {
		return err
	}
	if err := r.ensureNamespace(ctx); err != nil {
		return err
	}
	if err := r.mayKeepRecords(ctx); err != nil {
		return err
	}
	if err := r.create(ctx, made.rec, made.inventory, made.crds, made.objects); err != nil {
		return err
	}
	r.s.asDeployed = unchanged
	return nil
}

// nextRevision returns the number of the revision that follows the records.
func (r revisionMaker) nextRevision() int {
	if len(r.records) == 0 {
		return 1
	}
	return r.records[0].Revision + 1
}

// deployedRecord returns the newest record if it is proven, and says what is deployed; else nil.
func (r revisionMaker) deployedRecord(ctx context.Context) (*record.Record, error) {
	if len(r.records) == 0 || r.records[0].Status != StatusDeployed {
		return nil, nil
	}
	rec, err := r.load(ctx, r.records[0]) // it was loaded a moment ago, to inherit its inventory
	if err != nil || !r.believes(rec) {
		return nil, err
	}
	return rec, nil
}

// unchanged returns the entries of those objects and CRDs of crds/ that are just the same as in the previous revision. Their
// fields have to be known.
func (made *madeRevision) unchanged(crdsDigest string) map[record.ObjectKey]record.Entry {
	same, previous := map[record.ObjectKey]record.Entry{}, byKey(made.previous)
	entries := make(map[record.ObjectKey]record.Entry, len(made.inventory))
	for _, e := range made.inventory {
		if e.UID != "" && e.Fields != 0 {
			entries[e.Key()] = e
		}
	}
	for _, o := range made.crds {
		if e, owned := entries[record.KeyOf(o)]; owned && crdsDigest == made.rec.State.CRDsDigest {
			same[e.Key()] = e
		}
	}
	for _, o := range made.objects {
		was, known := previous[record.KeyOf(o)]
		e, owned := entries[record.KeyOf(o)]
		if known && owned && was.GroupVersionKind() == o.GroupVersionKind() && equality.Semantic.DeepEqual(was.Object, o.Object) {
			same[e.Key()] = e
		}
	}
	return same
}

// ensureNamespace makes the release's namespace if it is missing and may be made.
// It isn't part of the inventory: it stays when the add-on is removed.
func (r revisionMaker) ensureNamespace(ctx context.Context) error {
	name := r.release.Namespace
	if len(r.records) > 0 {
		return nil // the records are in it
	}
	ns, err := r.scope.Metadata(ctx, r.t.own(), record.Entry{Version: "v1", Kind: object.NamespaceKind.Kind, Name: name})
	switch {
	case err == nil && ns.DeletionTimestamp != nil:
		return r.refuse(object.ReasonNamespaceMissing, fmt.Sprintf("Namespace %s is being deleted", name))
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for namespace %s: %w", name, err)
	case !r.want.CreateNamespace:
		return r.refuse(object.ReasonNamespaceMissing, fmt.Sprintf(
			"Namespace %s doesn't exist. Make it, or set the add-on's createNamespace to true", name))
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = r.t.Client.Create(ctx, made, client.FieldOwner(r.scope.Manager()))
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	phase := addonsv1.AddonFailed
	f := r.failureOf(record.ObjectKey{Kind: object.NamespaceKind.Kind, Name: name}, err)
	switch f.Kind {
	case object.Transient:
		return fmt.Errorf("making namespace %s: %w", name, err)
	case object.Deferred:
		phase = addonsv1.AddonPending
	}
	return r.refuseAs(phase, f.Reason, "The add-on's namespace can't be made: "+f.Message)
}

// Where Target.Client acts as a ServiceAccount, the manager still writes the records. So that
// nobody takes over the release of a namespace by it, or fills one, the ServiceAccount has to be
// allowed what the manager does there.

// mayKeepRecords refuses a release without a record of ours in a namespace in which the
// ServiceAccount may not create Secrets.
func (r revisionMaker) mayKeepRecords(ctx context.Context) error {
	if r.t.Own == nil || len(r.records) > 0 && r.isProven(r.records[0]) {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.release.Namespace, GenerateName: "chandler-"}}
	err := r.t.Client.Create(ctx, secret, client.DryRunAll, client.FieldOwner(r.scope.Manager()))
	if apierrors.IsForbidden(err) {
		return r.refuse(object.ReasonForbidden, fmt.Sprintf(
			"ServiceAccount %s has to be allowed to create Secrets in namespace %s, where the release is recorded: %v", r.want.ServiceAccount, r.release.Namespace, err))
	}
	if err != nil {
		return fmt.Errorf("asking whether ServiceAccount %s may create Secrets in namespace %s: %w", r.want.ServiceAccount, r.release.Namespace, err)
	}
	return nil
}

// repeat records a revision with what an older one had. It is the rollback of the failed one, unless that is nil. Nothing is
// rendered, so the inputs may be gone by now. CRDs of crds/ stay as they are, as in Helm.
func (r revisionMaker) repeat(ctx context.Context, to Summary, failed *Summary) error {
	old, err := r.load(ctx, to)
	if err != nil {
		return err
	}
	if !old.IsIntact() {
		return &record.Fault{Kind: record.Damaged, Secret: r.release.Namespace + "/" + to.SecretName, Err: record.ErrChanged}
	}
	objects, _, err := r.manifest(ctx, old)
	if err != nil {
		return err
	}
	inventory, _, err := r.inherit(ctx)
	if err != nil {
		return err
	}
	return r.create(ctx, r.copyOf(old, r.records[0].Revision+1, failed), inventory, nil, objects)
}

// create records a new revision with these CRDs and objects, beside what is in the inventory
// of those before it. Nothing of it is in the cluster yet.
func (r revisionMaker) create(ctx context.Context, rec *record.Record, inventory []record.Entry, crds, objects []*unstructured.Unstructured) error {
	entries := object.EntriesOf(crds, objects)
	rec.State.Inventory = record.Union(inventory, entries)
	rec.Objects, rec.Kinds = int32(len(entries)), record.Kinds(entries)
	r.hidden.keepIn(rec)
	if err := r.s.store.Create(ctx, rec); err != nil {
		return err
	}
	r.rec, r.proof, r.newRevision = rec, rec.Proof(), true
	r.records = append([]Summary{rec.Summary}, r.records...)
	r.s.turnTo(rec.UID, false)
	r.s.keep(crds, objects)
	r.s.unscoped = r.scope.Unknown
	tooOld := record.Surplus(r.records, cmp.Or(r.want.HistoryLimit, addonsv1.DefaultHistoryLimit))
	return r.s.store.Delete(ctx, tooOld...)
}

// resume continues with the newest revision.
func (r installation) resume(ctx context.Context) error {
	rec, err := r.load(ctx, r.records[0])
	if err != nil {
		return err
	}
	r.rec = rec
	r.s.turnTo(rec.UID, false)
	if r.s.objects == nil {
		crds, err := r.scope.Prepare(rec.CRDs)
		if err != nil {
			return err
		}
		if err := r.memory.hold(ctx, object.Weight(crds...)); err != nil {
			return err
		}
		objects, _, err := r.manifest(ctx, rec)
		if err != nil {
			return err
		}
		r.s.keep(crds, objects)
		r.s.unscoped = r.scope.Unknown
	}
	r.scope.Learn(slices.Concat(r.s.crds, r.s.objects))
	return nil
}

// manifest returns the objects of a record's manifest, as they are to be applied, and how much memory they take.
func (r *call) manifest(ctx context.Context, rec *record.Record) (_ []*unstructured.Unstructured, weight int64, _ error) {
	objects, err := rec.Manifest()
	if err != nil {
		return nil, 0, err
	}
	weight = object.Weight(objects...)
	if err := r.memory.hold(ctx, 2*weight); err != nil {
		return nil, 0, err
	}
	objects, err = r.scope.Prepare(objects)
	return objects, weight, errors.Join(err, r.memory.hold(ctx, -weight))
}
