// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
	"github.com/cluster-chandler/chandler/internal/instance/registration/refusal"
)

// take makes the instance's object, or finds out that this process may go on with an existing one.
func (r *Registration) take(ctx context.Context) *obstacle {
	pi := &addonsv1.ProviderInstance{}
	err := r.client.Get(ctx, r.key(), pi)
	switch {
	case apierrors.IsNotFound(err):
		r.object = nil
		return r.create(ctx, addonsv1.ScopeWaiting)
	case err != nil:
		return &obstacle{reason: "APIServerUnavailable", message: fmt.Sprintf("reading ProviderInstance %s: %v", r.key(), err)}
	case r.ours(&pi.Spec), grant.IsExpired(pi):
		r.object = pi
		return nil
	default:
		r.object = nil
		return &obstacle{reason: "HeldByPredecessor", standby: true, message: fmt.Sprintf(
			"ProviderInstance %s is held by %s, which is alive: this process waits until it ends, or is silent for %d s", r.key(), pi.Spec.Holder, pi.Spec.ExpirySeconds)}
	}
}

func (r *Registration) create(ctx context.Context, claim addonsv1.ScopeClaim) *obstacle {
	pi := &addonsv1.ProviderInstance{Spec: r.spec(claim)}
	pi.Namespace, pi.Name = r.o.Namespace, r.o.Name
	if err := r.client.Create(ctx, pi); err != nil {
		return &obstacle{reason: refusal.Reason(err), message: fmt.Sprintf("creating ProviderInstance %s: %v", r.key(), err)}
	}
	r.object = pi
	return nil
}

// write makes the object's spec this process's own, with a claim, if nobody wrote it since. A holder whose claim was
// answered, and then taken back by somebody, can't claim again, so the process takes another name.
func (r *Registration) write(ctx context.Context, claim addonsv1.ScopeClaim) error {
	before, g := r.object.Spec, r.object.Status.Grant
	next := r.object.DeepCopy()
	next.Spec = r.spec(claim)
	if claim == addonsv1.ScopeClaiming && before.Claim == addonsv1.ScopeWaiting && g != nil && g.Holder == r.holder {
		next.Spec.Holder = newHolder()
	}
	if equality.Semantic.DeepEqual(next.Spec, before) {
		return nil
	}
	if err := r.client.Update(ctx, next); err != nil {
		return err
	}
	r.object, r.holder = next, next.Spec.Holder
	if before.Holder != r.holder && before.Claim != addonsv1.ScopeWaiting {
		r.event(corev1.EventTypeNormal, "TakenOver", fmt.Sprintf("%s took over from %s, which ended without a word", r.holder, before.Holder))
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

// spec returns what this process says of the instance.
func (r *Registration) spec(claim addonsv1.ScopeClaim) addonsv1.ProviderInstanceSpec {
	is := addonsv1.ProviderInstanceSpec{
		Namespaces:    r.o.Scope.Namespaces,
		WatchFilter:   r.o.Scope.WatchFilter,
		Version:       r.o.Version,
		APIVersions:   []string{addonsv1.GroupVersion.Version},
		Holder:        r.holder,
		LeaseName:     r.o.LeaseName,
		Claim:         claim,
		ExpirySeconds: r.life.ExpirySeconds(),
	}
	if r.o.Drain {
		is.Drain = &r.o.Drain
	}
	return is
}

// ours reports whether this process writes an object, or succeeds its holder by the Lease.
func (r *Registration) ours(spec *addonsv1.ProviderInstanceSpec) bool {
	return spec.Holder == r.holder || r.o.LeaseName != "" && spec.LeaseName == r.o.LeaseName && instance.ScopeOf(spec).Equal(r.o.Scope)
}

// claiming asks for the scope, and reads the answer.
type claiming struct{ *Registration }

// claim returns condition ScopeHeld. A claim that was made once stays, whatever becomes of the other conditions.
func (r claiming) claim(ctx context.Context) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ScopeHeldCondition, Status: metav1.ConditionFalse, Reason: addonsv1.ScopeNotClaimedReason}
	claim, problem := addonsv1.ScopeClaiming, firstProblem(r.result.api, r.result.namespaces)
	if problem != nil && (r.object.Spec.Holder != r.holder || r.object.Spec.Claim == addonsv1.ScopeWaiting) {
		claim = addonsv1.ScopeWaiting
	}
	err := r.write(ctx, claim)
	if err == nil && problem == nil {
		err = r.awaitAnswer(ctx)
	}
	switch g := r.object.Status.Grant; {
	case err != nil:
		c.Reason, c.Message = refusal.Reason(err), refusal.Text(err)
	case problem != nil:
		c.Message = "The scope isn't claimed before condition " + problem.Type + " is True"
	case r.object.HoldsScope():
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ScopeHeldReason
	case g != nil && g.Holder == r.holder && g.State == addonsv1.GrantRefused:
		c.Reason, c.Message = addonsv1.ScopeTakenReason, g.Message
	default:
		c.Reason, c.Message = addonsv1.WebhookUnavailableReason, "The shared deployment hasn't answered to the claim yet. Its processes, which serve the webhooks, have to run"
	}
	return c
}

// awaitAnswer reads the object for a while, until the claim of this process is answered.
func (r claiming) awaitAnswer(ctx context.Context) error {
	for range answerLooks {
		if g := r.object.Status.Grant; g != nil && g.Holder == r.holder && g.State != addonsv1.GrantReserved {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.o.Clock.After(answerInterval):
		}
		pi := &addonsv1.ProviderInstance{}
		if err := r.client.Get(ctx, r.key(), pi); err != nil {
			return err
		}
		r.object = pi
	}
	return nil
}
