// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/json"
	"reflect"

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

// isSame reports whether a new revision would have just what is deployed: the cluster's facts changed alone, as kinds
// came that the chart doesn't mind.
func (r revisionMaker) isSame(deployed, made *record.Record) bool {
	if deployed == nil || deployed.Transferred() || deployed.IsRollback() || r.want.Again {
		return false
	}
	return made.Holds() != "" && made.Holds() == deployed.Holds() && made.Spec == deployed.Spec && made.RenewAt.Equal(deployed.RenewAt) &&
		made.Artifact == deployed.Artifact && made.Chart == deployed.Chart && made.Version == deployed.Version &&
		made.AppVersion == deployed.AppVersion && reflect.DeepEqual(inJSON(made.Helm.Config), inJSON(deployed.Helm.Config)) &&
		reflect.DeepEqual(made.State.Generated, deployed.State.Generated)
}

// takeFacts brings new facts of the cluster into the record of what is deployed, which stays. Hooks don't run for them.
func (r revisionMaker) takeFacts(ctx context.Context, deployed, made *record.Record) error {
	is := deployed.Summary
	is.Digest, is.FactsUsed = made.Digest, made.FactsUsed
	r.rec = deployed
	return r.rewrite(ctx, deployed, is)
}

// inJSON returns values as a record has them.
func inJSON(values map[string]any) (stored map[string]any) {
	data, err := json.Marshal(values)
	if err != nil || json.Unmarshal(data, &stored) != nil {
		return values // which equals nothing that is stored
	}
	return stored
}
