// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Causes of a Refusal.
const (
	// ScopeTaken: another live instance claims or holds a part of the scope.
	ScopeTaken metav1.CauseType = "ScopeTaken"
	// NameTaken: another live process writes the ProviderInstance of this name.
	NameTaken metav1.CauseType = "NameTaken"
	// ClaimOutOfOrder: a step of the claim was left out.
	ClaimOutOfOrder metav1.CauseType = "ClaimOutOfOrder"
	// ScopeForbidden: who claims the scope has no rights in a part of it.
	ScopeForbidden metav1.CauseType = "ScopeForbidden"
	// TooManyInstances: the namespace has as many ProviderInstances as one may have.
	TooManyInstances metav1.CauseType = "TooManyInstances"
)

// Refusal is why the shared webhooks didn't admit a ProviderInstance.
type Refusal struct {
	Cause   metav1.CauseType
	Field   string
	Message string
}

// StatusError returns the refusal as an API server's answer. It isn't a Conflict,
// which clients try again at once, nor Forbidden, which looks like a missing right.
func (r Refusal) StatusError(pi *addonsv1.ProviderInstance) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("ProviderInstance %s/%s: %s: %s", pi.Namespace, pi.Name, r.Field, r.Message),
		Details: &metav1.StatusDetails{
			Group:  addonsv1.GroupVersion.Group,
			Kind:   "ProviderInstance",
			Name:   pi.Name,
			Causes: []metav1.StatusCause{{Type: r.Cause, Field: r.Field, Message: r.Message}},
		},
	}}
}

// RefusalOf returns the refusal in an API server's answer, false if it isn't one.
func RefusalOf(err error) (Refusal, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return Refusal{}, false
	}
	for _, cause := range status.Status().Details.Causes {
		switch cause.Type {
		case ScopeTaken, NameTaken, ClaimOutOfOrder, ScopeForbidden, TooManyInstances:
			return Refusal{Cause: cause.Type, Field: cause.Field, Message: cause.Message}, true
		}
	}
	return Refusal{}, false
}
