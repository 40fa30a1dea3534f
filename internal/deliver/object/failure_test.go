// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
