// SPDX-License-Identifier: Apache-2.0

package keep_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// TestDecide tells what becomes of an object that the add-on has by its inventory and doesn't want.
func TestDecide(t *testing.T) {
	const uid = types.UID("seen")
	me, other := record.Release{Namespace: "n", Name: "me"}, record.Release{Namespace: "n", Name: "other"}
	noted := record.Entry{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "a", UID: uid}
	ofHelm, shared, unproven := noted, noted, noted
	ofHelm.Helm, shared.Shared, unproven.Unproven = true, true, true
	ofHelm.UID = ""
	is := func(owner record.Release, managers ...string) *metav1.ObjectMeta {
		m := &metav1.ObjectMeta{Namespace: "n", Name: "a", UID: uid}
		if owner != (record.Release{}) {
			m.Labels = map[string]string{addonsv1.AddonLabel: owner.Name, addonsv1.AddonNamespaceLabel: owner.Namespace}
		}
		for _, manager := range managers {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		return m
	}
	helms := is(record.Release{})
	helms.Annotations = map[string]string{object.HelmReleaseName: me.Name, object.HelmReleaseNamespace: me.Namespace}
	again, going := is(me), is(me)
	again.UID, going.DeletionTimestamp = "again", &metav1.Time{}
	ours := object.FieldManager(me)
	for name, tc := range map[string]struct {
		facts keep.Facts
		want  keep.Verdict
		told  bool
	}{
		"its own":                        {keep.Facts{Entry: noted, Live: is(me)}, keep.Unsure, false},
		"a namespace of all":             {keep.Facts{Entry: shared, Live: is(me)}, keep.Stays, true},
		"another add-on's":               {keep.Facts{Entry: noted, Live: is(other)}, keep.Stays, true},
		"made again by others":           {keep.Facts{Entry: noted, Live: again}, keep.Stays, true},
		"of no proven record":            {keep.Facts{Entry: unproven, Live: is(me)}, keep.Stays, true},
		"of none, with its fields":       {keep.Facts{Entry: unproven, Live: is(me, ours)}, keep.Unsure, false},
		"without labels":                 {keep.Facts{Entry: noted, Live: is(record.Release{})}, keep.Stays, true},
		"of Helm's release":              {keep.Facts{Entry: ofHelm, Live: helms}, keep.Unsure, false},
		"of Helm's release, called off":  {keep.Facts{Entry: ofHelm, Live: helms, CalledOff: true}, keep.Disowned, true},
		"its own, called off":            {keep.Facts{Entry: noted, Live: is(me), CalledOff: true}, keep.Unsure, false},
		"applied under another name":     {keep.Facts{Entry: noted, Live: is(me), IsApplied: true}, keep.Stays, false},
		"going":                          {keep.Facts{Entry: noted, Live: going}, keep.Goes, false},
		"going, and applied under a new": {keep.Facts{Entry: noted, Live: going, IsApplied: true}, keep.Stays, false},
	} {
		tc.facts.Release = me
		if verdict, why := tc.facts.Decide(); verdict != tc.want || (why != "") != tc.told {
			t.Errorf("%s: %v (%q), not %v", name, verdict, why, tc.want)
		}
	}
}
