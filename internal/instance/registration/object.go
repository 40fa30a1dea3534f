// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// take makes the instance's object, or finds out that this process may go on with an existing one.
func (r *Registration) take(ctx context.Context) *obstacle {
	pi := &addonsv1.ProviderInstance{}
	asOf := r.o.Clock.Now()
	err := r.client.Get(ctx, r.key(), pi)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx)
	case err != nil:
		return &obstacle{reason: "APIServerUnavailable", message: fmt.Sprintf("reading ProviderInstance %s: %v", r.key(), err)}
	case r.ours(&pi.Spec), r.previous.Read(pi, asOf) <= 0:
		r.object = pi
		return nil
	default:
		r.object = nil
		return &obstacle{reason: "HeldByPredecessor", standby: true, message: fmt.Sprintf(
			"ProviderInstance %s is held by %s, which is alive: this process waits until it ends, or is silent for %d s", r.key(), pi.Spec.Holder, pi.Spec.ExpirySeconds)}
	}
}

func (r *Registration) create(ctx context.Context) *obstacle {
	pi := &addonsv1.ProviderInstance{Spec: r.spec(addonsv1.ScopeWaiting)}
	pi.Namespace, pi.Name = r.o.Namespace, r.o.Name
	sent := r.o.Clock.Now()
	if err := r.client.Create(ctx, pi); err != nil {
		r.object = nil
		return &obstacle{reason: reasonOf(err), message: fmt.Sprintf("creating ProviderInstance %s: %v", r.key(), err)}
	}
	r.life.extend(sent)
	r.object = pi
	return nil
}

// write makes the object's spec this process's own, with a claim, if nobody wrote it since.
func (r *Registration) write(ctx context.Context, claim addonsv1.ScopeClaim) error {
	next := r.object.DeepCopy()
	next.Spec = r.spec(claim)
	if equality.Semantic.DeepEqual(next.Spec, r.object.Spec) {
		return nil
	}
	before := r.object.Spec.Holder
	sent := r.o.Clock.Now()
	if err := r.client.Update(ctx, next); err != nil {
		return err
	}
	if claim == addonsv1.ScopeClaiming {
		r.life.begin(sent)
	} else {
		r.life.extend(sent)
	}
	r.object = next
	if before != r.holder {
		r.event(corev1.EventTypeNormal, "TakenOver", fmt.Sprintf("%s took over from %s, which ended without a word", r.holder, before))
	}
	return nil
}

// newHolder names this process as leases do: by the host, and a random part.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil || len(host) > 200 {
		host = "chandler"
	}
	return host + "_" + string(uuid.NewUUID())
}

func (r *Registration) key() client.ObjectKey {
	return types.NamespacedName{Namespace: r.o.Namespace, Name: r.o.Name}
}

// expirySeconds returns what is written into the object, in whole seconds.
func (r *Registration) expirySeconds() int32 {
	return int32(math.Ceil((beatsToExpiry * r.o.Heartbeat).Seconds()))
}

// spec returns what this process says of the instance.
func (r *Registration) spec(claim addonsv1.ScopeClaim) addonsv1.ProviderInstanceSpec {
	return addonsv1.ProviderInstanceSpec{
		Namespaces:    r.o.Scope.Namespaces,
		WatchFilter:   r.o.Scope.WatchFilter,
		Version:       r.o.Version,
		APIVersions:   []string{addonsv1.GroupVersion.Version},
		Holder:        r.holder,
		LeaseName:     r.o.LeaseName,
		Claim:         claim,
		ExpirySeconds: r.expirySeconds(),
	}
}

// ours reports whether this process writes an object, or succeeds its holder by the Lease.
func (r *Registration) ours(spec *addonsv1.ProviderInstanceSpec) bool {
	return spec.Holder == r.holder || r.o.LeaseName != "" && spec.LeaseName == r.o.LeaseName && instance.ScopeOf(spec).Equal(r.o.Scope)
}

// claiming takes the steps from a claim to a grant of the scope.
type claiming struct{ *Registration }

// claim takes the object to Active as far as possible, and returns condition ScopeHeld. A claim
// counts only if the one before it is stored, and both are answered while the process is alive.
func (r claiming) claim(ctx context.Context) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ScopeHeldCondition, Status: metav1.ConditionFalse, Reason: addonsv1.ScopeNotClaimedReason}
	if problem := firstProblem(r.result.api, r.result.namespaces); problem != nil {
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
			c.Message = "The API server took so long to answer that the claim may have expired. It is made again"
			return c
		}
	}
	c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ScopeHeldReason
	return c
}

// nextClaims returns what is to be written until the claim is Active.
func (r claiming) nextClaims() []addonsv1.ScopeClaim {
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
func (r claiming) stepBack(ctx context.Context) {
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

// webhookFailed reports whether a webhook gave no answer, or told of a failure.
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
