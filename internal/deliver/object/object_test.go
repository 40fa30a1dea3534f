// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		"ours, from before a crash":        {made(me, nobody, object.FieldManager(me)), record.Entry{}, true},
		"ours, and begins to go over":      {made(me, nobody, object.FieldManager(other)), record.Entry{}, true},
		"a copy":                           {made(me, nobody, "kubectl"), record.Entry{}, false},
		"a copy, while nothing is proven":  {made(me, nobody, object.FieldManager(other)), record.Entry{Unproven: true}, false},
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

func TestClassify(t *testing.T) {
	key := record.ObjectKey{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "b"}
	secret := record.ObjectKey{Kind: "Secret", Namespace: "a", Name: "b"}
	status := func(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
	}
	noMatch := fmt.Errorf("x: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "g", Kind: "K"}})
	for name, tc := range map[string]struct {
		err    error
		key    record.ObjectKey
		own    bool
		kind   object.FailureKind
		reason string
		words  string
	}{
		"network":              {err: errors.New("connection refused"), kind: object.Transient},
		"throttled":            {err: apierrors.NewTooManyRequests("later", 7), kind: object.Transient},
		"unavailable":          {err: apierrors.NewServiceUnavailable("x"), kind: object.Transient},
		"etcd":                 {err: status(500, "", "etcdserver: leader changed"), kind: object.Transient},
		"internal":             {err: apierrors.NewInternalError(errors.New("x")), kind: object.Transient},
		"other write first":    {err: apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("x")), kind: object.Transient},
		"webhook down":         {err: apierrors.NewInternalError(errors.New(`failed calling webhook "w": connection refused`)), kind: object.Deferred, reason: object.ReasonWaitingForWebhook, words: `"w"`},
		"webhook denies":       {err: status(403, metav1.StatusReasonForbidden, `admission webhook "w" denied the request`), kind: object.Rejected, reason: object.ReasonForbidden, words: "denied"},
		"forbidden":            {err: status(403, metav1.StatusReasonForbidden, "no"), kind: object.Rejected, reason: object.ReasonForbidden},
		"invalid":              {err: status(422, metav1.StatusReasonInvalid, "spec.x: bad"), kind: object.Rejected, reason: object.ReasonObjectRejected, words: "spec.x"},
		"immutable":            {err: status(422, metav1.StatusReasonInvalid, "x", metav1.StatusCause{Message: "field is immutable"}), kind: object.Rejected, reason: object.ReasonImmutableField},
		"malformed":            {err: status(500, "", "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema"), kind: object.Rejected, reason: object.ReasonObjectRejected, words: ".spec.foo"},
		"malformed Secret":     {err: status(500, "", `failed to create typed patch object (x): .data.k: expected string, got "hunter2"`), key: secret, kind: object.Rejected, reason: object.ReasonObjectRejected, words: ".data.k: expected string"},
		"invalid Secret":       {err: status(422, metav1.StatusReasonInvalid, "hunter2", metav1.StatusCause{Field: "data[k]", Message: "hunter2"}), key: secret, kind: object.Rejected, reason: object.ReasonObjectRejected, words: "data[k]"},
		"Secret, server error": {err: status(500, metav1.StatusReasonInternalError, "hunter2"), key: secret, kind: object.Transient},
		"fields of another":    {err: status(409, metav1.StatusReasonConflict, "x", metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "kubectl"`}), kind: object.Rejected, reason: object.ReasonFieldConflict, words: ".spec.replicas"},
		"no such kind":         {err: noMatch, kind: object.Rejected, reason: object.ReasonKindMissing},
		"kind is coming":       {err: noMatch, own: true, kind: object.Deferred, reason: object.ReasonWaitingForCRDs},
		"a name that none has": {err: errors.New("invalid resource name"), key: record.ObjectKey{Kind: "Secret", Namespace: "a", Name: "b/c"}, kind: object.Rejected, reason: object.ReasonObjectRejected, words: "metadata.name may not contain '/'"},
		"namespace, likewise":  {err: errors.New("invalid namespace"), key: record.ObjectKey{Kind: "Secret", Namespace: "%", Name: "b"}, kind: object.Rejected, reason: object.ReasonObjectRejected, words: "metadata.namespace may not contain '%'"},
		"code 418":             {err: status(http.StatusTeapot, "", "tea"), kind: object.Rejected, reason: object.ReasonObjectRejected},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.key == (record.ObjectKey{}) {
				tc.key = key
			}
			f := object.Classify(tc.err, tc.key, tc.own)
			if f.Kind != tc.kind || f.Reason != tc.reason || !strings.Contains(f.Message, tc.words) {
				t.Errorf("got %+v", f)
			}
			if strings.Contains(f.Message+errors.Unwrap(f).Error(), "hunter2") {
				t.Errorf("tells a secret: %+v", f)
			}
		})
	}
}

func objectOf(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	return u
}

func TestWaves(t *testing.T) {
	objects := []*unstructured.Unstructured{
		objectOf("v1", "Namespace", "ns"), objectOf("v1", "Secret", "s"), objectOf("v1", "ConfigMap", "c"),
		objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
		objectOf("rbac.authorization.k8s.io/v1", "Role", "r"), objectOf("rbac.authorization.k8s.io/v1", "RoleBinding", "rb"),
		objectOf("v1", "Service", "svc"), objectOf("apps/v1", "Deployment", "d"),
		objectOf("networking.k8s.io/v1", "IngressClass", "class"), objectOf("networking.k8s.io/v1", "Ingress", "in"),
		objectOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"),
		objectOf("example.com/v1", "Service", "not-the-core-one"), objectOf("example.com/v1", "Widget", "w"),
	}
	want := [][]string{{"ns"}, {"c", "r", "s"}, {"crd"}, {"rb", "svc"}, {"class", "d"}, {"in"}, {"v"}, {"not-the-core-one", "w"}}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	got := object.Waves(objects)
	if len(got) != len(want) {
		t.Fatalf("%d waves", len(got))
	}
	for i, wave := range got {
		names := map[string]bool{}
		for _, o := range wave {
			names[o.GetName()] = true
		}
		for _, name := range want[i] {
			if !names[name] || len(names) != len(want[i]) {
				t.Errorf("wave %d is %v, want %v", i, names, want[i])
			}
		}
	}
}

func TestRemovalWaves(t *testing.T) {
	var entries []record.Entry
	for _, o := range []*unstructured.Unstructured{
		objectOf("v1", "Namespace", "n"), objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
		objectOf("v1", "ServiceAccount", "sa"), objectOf("apps/v1", "Deployment", "d"),
		objectOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"), objectOf("example.com/v1", "Widget", "w"),
	} {
		entries = append(entries, record.EntryOf(o))
	}
	var got [][]string
	for _, wave := range object.RemovalWaves(entries) {
		var names []string
		for _, e := range wave {
			names = append(names, e.Name)
		}
		got = append(got, names)
	}
	if d := cmp.Diff([][]string{{"w"}, {"v", "d", "sa"}, {"crd"}, {"n"}}, got); d != "" {
		t.Error(d)
	}
}
