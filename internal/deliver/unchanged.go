// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// deployedObjects returns the objects of the newest revision as they were applied, if that
// revision is deployed.
func (r *run) deployedObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if len(r.records) == 0 || !r.records[0].Complete || r.records[0].Status != StatusDeployed {
		return nil, nil
	}
	rec, err := r.s.store.Load(ctx, r.records[0]) // it was loaded a moment ago, to inherit its inventory
	if err != nil || !r.believes(rec) {
		return nil, err
	}
	objects, err := record.ParseManifest(rec.Helm.Manifest)
	if err != nil {
		return nil, nil //nolint:nilerr // so all objects are applied
	}
	return r.scope.Prepare(objects)
}

// asDeployed returns the entries of those wanted objects that the deployed revision has just the
// same. Their fields have to be known.
func asDeployed(deployed, wanted []*unstructured.Unstructured, inventory []record.Entry) map[record.ObjectKey]record.Entry {
	former := make(map[record.ObjectKey]*unstructured.Unstructured, len(deployed))
	for _, o := range deployed {
		former[record.KeyOf(o)] = o
	}
	entries := make(map[record.ObjectKey]record.Entry, len(inventory))
	for _, e := range inventory {
		if e.UID != "" && e.Fields != 0 {
			entries[e.Key()] = e
		}
	}
	same := map[record.ObjectKey]record.Entry{}
	for _, o := range wanted {
		key := record.KeyOf(o)
		was, known := former[key]
		e, owned := entries[key]
		if known && owned && was.GroupVersionKind() == o.GroupVersionKind() && equality.Semantic.DeepEqual(was.Object, o.Object) {
			same[key] = e
		}
	}
	return same
}

// leaveAsDeployed reports whether an object stays as the deployed revision applied it, as nobody
// has changed it since. It is read, unless a watch shows it and it has no status to wait for.
func (r *run) leaveAsDeployed(ctx context.Context, o *unstructured.Unstructured) (left bool, _ error) {
	key := record.KeyOf(o)
	e, same := r.s.asDeployed[key]
	if !same {
		return false, nil
	}
	if r.want.Seen != nil && readiness.HasNoStatus(o) && len(r.checks.For(o)) == 0 {
		if seen, known := r.want.Seen(key); known && seen == e.Fields {
			ready := observe.Object{Status: observe.Status{Phase: observe.Current}}
			r.note(key, applied{Object: ready, uid: e.UID, fields: e.Fields})
			return true, nil
		}
	}
	live, err := r.applier.Get(ctx, o)
	if err != nil {
		return false, nil //nolint:nilerr // applying it tells what is wrong
	}
	if live.GetUID() != e.UID || live.GetDeletionTimestamp() != nil || drift.FieldsOf(live.GetManagedFields(), object.FieldManager(r.release)) != e.Fields {
		return false, nil
	}
	return true, r.noteApplied(o, live, false, nil)
}
