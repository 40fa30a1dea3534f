// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

func TestClaim(t *testing.T) {
	me, other := record.Release{Namespace: "a", Name: "me"}, record.Release{Namespace: "a", Name: "other"}
	leaving := record.Release{Namespace: "a", Name: "leaving"}
	labelled := func(r record.Release) metav1.ObjectMeta {
		return metav1.ObjectMeta{Labels: map[string]string{addonsv1.AddonLabel: r.Name, addonsv1.AddonNamespaceLabel: r.Namespace}}
	}
	managed := func(manager string) metav1.ObjectMeta {
		return metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager}}}
	}
	kept := func(by record.Release) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{object.KeptByAnnotation: by.String()}}
	}
	halfway := labelled(me)
	halfway.ManagedFields = managed(object.FieldManager(leaving)).ManagedFields
	named := func(name string) record.ObjectKey { return record.ObjectKey{Kind: "Namespace", Name: name} }
	helms := managed("helm")
	helms.Annotations = map[string]string{object.HelmReleaseName: "me", object.HelmReleaseNamespace: "a"}
	fail, ifEqual, adopt := addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdoptIfEqual, addonsv1.AdoptionPolicyAdopt
	for name, tc := range map[string]struct {
		object    metav1.ObjectMeta
		policy    addonsv1.AdoptionPolicy
		key       record.ObjectKey
		crd, helm bool
		had       bool
		want      object.Claim
		reason    string
	}{
		"ours":                            {object: labelled(me), policy: fail, had: true, want: object.ClaimOwn},
		"somebody's, with our labels":     {object: labelled(me), policy: fail, want: object.ClaimRefuse, reason: object.ReasonObjectExists},
		"ours, label taken off":           {object: managed(object.FieldManager(me)), policy: fail, want: object.ClaimOwn},
		"another add-on's":                {object: labelled(other), policy: adopt, want: object.ClaimRefuse, reason: object.ReasonOwnedByOther},
		"another add-on's, of crds/":      {object: labelled(other), policy: adopt, crd: true, want: object.ClaimLeave},
		"somebody's, Fail":                {object: managed("kubectl"), policy: fail, want: object.ClaimRefuse, reason: object.ReasonObjectExists},
		"somebody's, none":                {object: managed("kubectl"), want: object.ClaimRefuse, reason: object.ReasonObjectExists},
		"somebody's, AdoptIfEqual":        {object: managed("kubectl"), policy: ifEqual, want: object.ClaimIfEqual},
		"somebody's, Adopt":               {object: managed("kubectl"), policy: adopt, want: object.ClaimAdopt},
		"somebody's, of crds/":            {object: managed("kubectl"), policy: fail, crd: true, want: object.ClaimLeave},
		"a leaving add-on's":              {object: labelled(leaving), policy: fail, want: object.ClaimTakeOver},
		"ours, was about to go over":      {object: halfway, policy: fail, want: object.ClaimTakeOver},
		"kept by us":                      {object: kept(me), policy: fail, want: object.ClaimAdopt},
		"kept by us, of crds/":            {object: kept(me), policy: fail, crd: true, want: object.ClaimAdopt},
		"kept by another":                 {object: kept(other), policy: fail, want: object.ClaimRefuse, reason: object.ReasonObjectExists},
		"kept by us, another's by now":    {object: metav1.ObjectMeta{Labels: labelled(other).Labels, Annotations: kept(me).Annotations}, policy: fail, want: object.ClaimRefuse, reason: object.ReasonOwnedByOther},
		"our namespace":                   {object: labelled(me), key: named("n"), policy: fail, had: true, want: object.ClaimOwn},
		"namespace":                       {object: managed("kubectl"), key: named("n"), policy: fail, want: object.ClaimShare},
		"namespace that was shared":       {object: managed(object.FieldManager(me)), key: named("n"), want: object.ClaimShare},
		"another's namespace":             {object: labelled(other), key: named("n"), policy: adopt, want: object.ClaimShare},
		"namespace, Adopt":                {object: managed("kubectl"), key: named("n"), policy: adopt, want: object.ClaimAdopt},
		"shared namespace, AdoptIfEqual":  {object: managed(object.FieldManager(me)), key: named("n"), policy: ifEqual, want: object.ClaimIfEqual},
		"namespace kept by us":            {object: kept(me), key: named("n"), policy: fail, want: object.ClaimAdopt},
		"the release's namespace, Adopt":  {object: kept(me), key: named("a"), policy: adopt, want: object.ClaimShare},
		"kube-system, Adopt":              {object: managed("kubectl"), key: named("kube-system"), policy: adopt, want: object.ClaimShare},
		"default, AdoptIfEqual":           {object: managed("kubectl"), key: named("default"), policy: ifEqual, want: object.ClaimShare},
		"of a Helm release that we adopt": {object: helms, policy: ifEqual, helm: true, want: object.ClaimAdopt},
		"of a Helm release, not adopted":  {object: helms, policy: fail, want: object.ClaimRefuse, reason: object.ReasonObjectExists},
	} {
		t.Run(name, func(t *testing.T) {
			c := object.Claimant{Release: me, Key: tc.key, Policy: tc.policy, CRD: tc.crd, Had: tc.had, Helm: tc.helm, Leaving: []record.Release{leaving}}
			got, reason, _ := c.Decide(&tc.object)
			if got != tc.want || reason != tc.reason {
				t.Errorf("got %v %s", got, reason)
			}
		})
	}
}

// TestOwns tells what is a release's to delete.
func TestOwns(t *testing.T) {
	me, other := record.Release{Namespace: "a", Name: "me"}, record.Release{Namespace: "a", Name: "other"}
	made := func(labels, helm record.Release, managers ...string) *metav1.ObjectMeta {
		m := &metav1.ObjectMeta{UID: "now"}
		if labels != (record.Release{}) {
			m.Labels = map[string]string{addonsv1.AddonLabel: labels.Name, addonsv1.AddonNamespaceLabel: labels.Namespace}
		}
		if helm != (record.Release{}) {
			m.Annotations = map[string]string{object.HelmReleaseName: helm.Name, object.HelmReleaseNamespace: helm.Namespace}
		}
		for _, manager := range managers {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		return m
	}
	nobody := record.Release{}
	for name, tc := range map[string]struct {
		object *metav1.ObjectMeta
		entry  record.Entry
		want   bool
	}{
		"ours":                             {made(me, nobody), record.Entry{UID: "now"}, true},
		"ours, from before a crash":        {made(me, nobody), record.Entry{}, true},
		"we made it again":                 {made(me, nobody, object.FieldManager(me)), record.Entry{UID: "previous"}, true},
		"somebody made it again":           {made(me, nobody, "kubectl"), record.Entry{UID: "previous"}, false},
		"another add-on's":                 {made(other, me), record.Entry{UID: "now", Helm: true}, false},
		"of the Helm release":              {made(nobody, me), record.Entry{Helm: true}, true},
		"of another Helm release by now":   {made(nobody, other), record.Entry{Helm: true}, false},
		"nobody's by now":                  {made(nobody, nobody), record.Entry{Helm: true}, false},
		"of a Helm release, though not in": {made(nobody, me), record.Entry{UID: "now"}, false},
	} {
		if got := object.IsOwned(tc.object, tc.entry, me, nil); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
