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

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

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
		objectOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"),
		objectOf("example.com/v1", "Service", "not-the-core-one"), objectOf("example.com/v1", "Widget", "w"),
	}
	want := [][]string{{"ns"}, {"c", "s"}, {"crd"}, {"r"}, {"rb"}, {"svc"}, {"d"}, {"v"}, {"not-the-core-one", "w"}}
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
