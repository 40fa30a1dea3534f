// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// deployedObjects returns the objects of the newest revision as they were applied, if that
// revision is deployed.
func (r revisionMaker) deployedObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
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

// sameAsDeployed returns the entries of those wanted objects that the deployed revision has just the
// same. Their fields have to be known.
func sameAsDeployed(deployed, wanted []*unstructured.Unstructured, inventory []record.Entry) map[record.ObjectKey]record.Entry {
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
