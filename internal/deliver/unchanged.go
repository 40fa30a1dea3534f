// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// deployed is the newest revision as it was applied.
type deployed struct {
	objects []*unstructured.Unstructured
	crds    string // the digest of those of crds/, "" if there are none, or that isn't known
}

// deployedNow returns the newest revision, if it is deployed.
func (r revisionMaker) deployedNow(ctx context.Context) (deployed, error) {
	if len(r.records) == 0 || !r.records[0].Complete || r.records[0].Status != StatusDeployed {
		return deployed{}, nil
	}
	rec, err := r.s.store.Load(ctx, r.records[0]) // it was loaded a moment ago, to inherit its inventory
	if err != nil || !r.believes(rec) {
		return deployed{}, err
	}
	objects, err := record.ParseManifest(rec.Helm.Manifest)
	if err != nil {
		return deployed{}, nil //nolint:nilerr // so all objects are applied
	}
	objects, err = r.scope.Prepare(objects)
	return deployed{objects, rec.State.CRDsDigest}, err
}

// sameAs returns the entries of those objects and CRDs of crds/ of a revision that the deployed one has just the
// same. Their fields have to be known.
func (is deployed) sameAs(made *madeRevision) map[record.ObjectKey]record.Entry {
	previous := make(map[record.ObjectKey]*unstructured.Unstructured, len(is.objects))
	for _, o := range is.objects {
		previous[record.KeyOf(o)] = o
	}
	entries := make(map[record.ObjectKey]record.Entry, len(made.inventory))
	for _, e := range made.inventory {
		if e.UID != "" && e.Fields != 0 {
			entries[e.Key()] = e
		}
	}
	same := map[record.ObjectKey]record.Entry{}
	for _, o := range made.crds {
		if e, owned := entries[record.KeyOf(o)]; owned && is.crds == made.rec.State.CRDsDigest {
			same[e.Key()] = e
		}
	}
	for _, o := range made.objects {
		key := record.KeyOf(o)
		was, known := previous[key]
		e, owned := entries[key]
		if known && owned && was.GroupVersionKind() == o.GroupVersionKind() && equality.Semantic.DeepEqual(was.Object, o.Object) {
			same[key] = e
		}
	}
	return same
}
