// SPDX-License-Identifier: Apache-2.0

// Package refusal says why the API server didn't store a claim of a scope.
package refusal

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Reason returns the reason of condition ScopeHeld for a write that wasn't stored.
func Reason(err error) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.HasStatusCause(err, addonsv1.ScopeForbiddenReason):
		return addonsv1.ScopeForbiddenReason
	case !errors.As(err, &status):
		return addonsv1.InternalErrorReason
	case webhookFailed(status.Status()):
		return addonsv1.WebhookUnavailableReason
	default:
		return addonsv1.ScopeNotClaimedReason
	}
}

// webhookFailed reports whether a webhook gave no answer, or told of a failure.
func webhookFailed(s metav1.Status) bool {
	return s.Code >= http.StatusInternalServerError && (strings.Contains(s.Message, "failed calling webhook") || strings.Contains(s.Message, denied))
}

const denied = "denied the request: "

// Text returns the message of an error. It leaves out who refused: that it was the webhook is clear.
func Text(err error) string {
	if cause, ok := apierrors.StatusCause(err, addonsv1.ScopeForbiddenReason); ok {
		return cause.Message
	}
	if _, text, ok := strings.Cut(err.Error(), denied); ok {
		return text
	}
	return err.Error()
}
