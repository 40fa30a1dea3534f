// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// claim is condition ScopeHeld: it takes the object to Active, as far as it is
// let. A claim counts only if the one before it is stored, and both are answered
// while this process counts as alive.
func (r *Registration) claim(ctx context.Context) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ScopeHeldCondition, Status: metav1.ConditionFalse, Reason: addonsv1.ScopeNotClaimedReason}
	if problem := firstProblem(r.findings.api, r.findings.namespaces); problem != nil {
		c.Message = "The scope isn't claimed before condition " + problem.Type + " is True"
		if err := r.write(ctx, addonsv1.ScopeWaiting); err != nil {
			return refusal(err)
		}
		return c
	}
	for _, next := range r.nextClaims() {
		if err := r.write(ctx, next); err != nil {
			c := refusal(err)
			if c.Reason != addonsv1.InternalErrorReason && c.Reason != addonsv1.WebhookUnavailableReason {
				r.stepBack(ctx)
			}
			return c
		}
		if next == addonsv1.ScopeWaiting {
			continue
		}
		if !r.life.isValid() {
			r.stepBack(ctx)
			c.Message = "The API server took so long to answer that the claim may have expired. It is made anew"
			return c
		}
	}
	c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ScopeHeldReason
	return c
}

// nextClaims returns what is to be written until the claim is Active.
func (r *Registration) nextClaims() []addonsv1.ScopeClaim {
	ours, claim := r.object.Spec.Holder == r.holder, r.object.Spec.Claim
	switch {
	case !ours:
		return []addonsv1.ScopeClaim{addonsv1.ScopeClaiming, addonsv1.ScopeActive}
	case claim != addonsv1.ScopeWaiting && !r.life.isValid():
		return []addonsv1.ScopeClaim{addonsv1.ScopeWaiting, addonsv1.ScopeClaiming, addonsv1.ScopeActive}
	case claim == addonsv1.ScopeWaiting:
		return []addonsv1.ScopeClaim{addonsv1.ScopeClaiming, addonsv1.ScopeActive}
	default:
		return []addonsv1.ScopeClaim{addonsv1.ScopeActive}
	}
}

// stepBack lets go of a claim. If that fails the next round makes it good.
func (r *Registration) stepBack(ctx context.Context) {
	if r.object.Spec.Holder == r.holder {
		_ = r.write(ctx, addonsv1.ScopeWaiting)
	}
}

// refusal says why a claim wasn't stored.
func refusal(err error) metav1.Condition {
	return metav1.Condition{Type: addonsv1.ScopeHeldCondition, Status: metav1.ConditionFalse, Reason: reasonOf(err), Message: textOf(err)}
}

func reasonOf(err error) string {
	var status apierrors.APIStatus
	refusal, refused := instance.RefusalOf(err)
	switch {
	case refused && refusal.Cause == instance.ScopeTaken:
		return addonsv1.ScopeTakenReason
	case refused && refusal.Cause == instance.ScopeForbidden:
		return addonsv1.ScopeForbiddenReason
	case !errors.As(err, &status):
		return addonsv1.InternalErrorReason
	case webhookFailed(status.Status()):
		return addonsv1.WebhookUnavailableReason
	default:
		return addonsv1.ScopeNotClaimedReason
	}
}

// webhookFailed says whether the API server got no answer from a webhook, or one
// that tells of a failure.
func webhookFailed(s metav1.Status) bool {
	return s.Code >= http.StatusInternalServerError && (strings.Contains(s.Message, "failed calling webhook") || strings.Contains(s.Message, denied))
}

const denied = "denied the request: "

// textOf leaves out who refused: that it was the webhook is clear.
func textOf(err error) string {
	if refusal, ok := instance.RefusalOf(err); ok {
		return refusal.Message
	}
	if _, text, ok := strings.Cut(err.Error(), denied); ok {
		return text
	}
	return err.Error()
}
