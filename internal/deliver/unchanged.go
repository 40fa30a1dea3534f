// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// unchangedSince returns what a new revision has just the same as the deployed one, which may be nil.
func (r revisionMaker) unchangedSince(deployed *record.Record, made *madeRevision) (map[record.ObjectKey]record.Entry, error) {
	if deployed == nil {
		return nil, nil
	}
	objects, err := deployed.Manifest()
	if err != nil {
		return nil, nil //nolint:nilerr // so all objects are applied
	}
	if objects, err = r.scope.Prepare(objects); err != nil {
		return nil, err
	}
	return made.unchanged(objects, deployed.State.CRDsDigest), nil
}

// unchanged returns the entries of those objects and CRDs of crds/ that are just the same as these. Their fields have to
// be known.
func (made *madeRevision) unchanged(objects []*unstructured.Unstructured, crdsDigest string) map[record.ObjectKey]record.Entry {
	same := map[record.ObjectKey]record.Entry{}
	previous := make(map[record.ObjectKey]*unstructured.Unstructured, len(objects))
	for _, o := range objects {
		previous[record.KeyOf(o)] = o
	}
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
