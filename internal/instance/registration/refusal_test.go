// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

func TestRefusal(t *testing.T) {
	const hook = `admission webhook "x" denied the request: `
	taken := instance.Refusal{Cause: instance.ScopeTaken, Field: "spec.claim", Message: "it is taken"}.StatusError(&addonsv1.ProviderInstance{})
	taken.ErrStatus.Message = hook + taken.ErrStatus.Message
	forbidden := instance.Refusal{Cause: instance.ScopeForbidden, Field: "spec.namespaces", Message: "no rights"}.StatusError(&addonsv1.ProviderInstance{})
	many := instance.Refusal{Cause: instance.TooManyInstances, Field: "metadata.namespace", Message: "too many"}.StatusError(&addonsv1.ProviderInstance{})
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
	}
	for name, tc := range map[string]struct {
		err           error
		reason, wants string
	}{
		"another holds the scope":   {taken, addonsv1.ScopeTakenReason, "it is taken"},
		"it has no rights there":    {forbidden, addonsv1.ScopeForbiddenReason, "no rights"},
		"there are too many":        {many, addonsv1.ScopeNotClaimedReason, "too many"},
		"no webhook answers":        {apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)), addonsv1.WebhookUnavailableReason, `Internal error occurred: failed calling webhook "x": connection refused`},
		"the webhook fails":         {answer(http.StatusInternalServerError, hook+"listing: forbidden"), addonsv1.WebhookUnavailableReason, "listing: forbidden"},
		"somebody else's webhook":   {answer(http.StatusForbidden, hook+"not on Fridays"), addonsv1.ScopeNotClaimedReason, "not on Fridays"},
		"the object was written":    {apierrors.NewConflict(schema.GroupResource{}, "chandler", errors.New("changed")), addonsv1.ScopeNotClaimedReason, `Operation cannot be fulfilled on  "chandler": changed`},
		"the API server is away":    {context.DeadlineExceeded, addonsv1.InternalErrorReason, "context deadline exceeded"},
		"the API server has a cold": {answer(http.StatusInternalServerError, "etcdserver: timeout"), addonsv1.ScopeNotClaimedReason, "etcdserver: timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			if c := refusal(tc.err); c.Reason != tc.reason || c.Message != tc.wants || c.Status != metav1.ConditionFalse {
				t.Errorf("refusal() = %s %s: %q, want %s: %q", c.Status, c.Reason, c.Message, tc.reason, tc.wants)
			}
		})
	}
}
