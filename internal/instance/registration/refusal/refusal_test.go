// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/registration/refusal"
)

// TestReason has the reasons for which a claim isn't stored.
func TestReason(t *testing.T) {
	const hook = `admission webhook "x" denied the request: `
	forbidden := apierrors.NewInvalid(schema.GroupKind{}, "chandler", nil)
	forbidden.ErrStatus.Message = hook + "no"
	forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: addonsv1.ScopeForbiddenReason, Message: "no rights"}}
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
	}
	for name, tc := range map[string]struct {
		err           error
		reason, wants string
	}{
		"it has no rights there":    {forbidden, addonsv1.ScopeForbiddenReason, "no rights"},
		"no webhook answers":        {apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)), addonsv1.WebhookUnavailableReason, `Internal error occurred: failed calling webhook "x": connection refused`},
		"the webhook fails":         {answer(http.StatusInternalServerError, hook+"listing: forbidden"), addonsv1.WebhookUnavailableReason, "listing: forbidden"},
		"somebody else's webhook":   {answer(http.StatusForbidden, hook+"not on Fridays"), addonsv1.ScopeNotClaimedReason, "not on Fridays"},
		"the object was written":    {apierrors.NewConflict(schema.GroupResource{}, "chandler", errors.New("changed")), addonsv1.ScopeNotClaimedReason, `Operation cannot be fulfilled on  "chandler": changed`},
		"the API server is away":    {context.DeadlineExceeded, addonsv1.InternalErrorReason, "context deadline exceeded"},
		"the API server has a cold": {answer(http.StatusInternalServerError, "etcdserver: timeout"), addonsv1.ScopeNotClaimedReason, "etcdserver: timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			if reason, text := refusal.Reason(tc.err), refusal.Text(tc.err); reason != tc.reason || text != tc.wants {
				t.Errorf("%s: %q, want %s: %q", reason, text, tc.reason, tc.wants)
			}
		})
	}
}
