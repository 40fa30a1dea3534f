// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// roundResult is what a round found out.
type roundResult struct {
	obstacle               *obstacle
	api, namespaces, scope metav1.Condition
}

// obstacle keeps the instance from writing its object, so it can't say it there.
type obstacle struct {
	reason, message string
	// standby: nothing is wrong, another process of the instance is at work.
	standby bool
}

// parts returns the conditions that Ready sums up, in the order in which they become True.
func (f *roundResult) parts() []metav1.Condition {
	return []metav1.Condition{f.api, f.namespaces, f.scope}
}

// firstProblem returns the first condition that isn't True, nil if all are.
func firstProblem(conditions ...metav1.Condition) *metav1.Condition {
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			return &c
		}
	}
	return nil
}

// ready returns condition Ready.
func (f *roundResult) ready() metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason, Message: f.api.Message}
	if problem := firstProblem(f.parts()...); problem != nil {
		c.Status, c.Reason, c.Message = problem.Status, problem.Reason, problem.Message
	}
	return c
}

// reasons returns the same for results that tell people the same. Messages may name passing errors.
func (f *roundResult) reasons() string {
	all := []string{f.api.Reason, f.namespaces.Reason, f.scope.Reason}
	if f.obstacle != nil {
		all = append(all, f.obstacle.reason)
	}
	return strings.Join(all, " ")
}

// report tells people what a round found out, once for each change: as an event, which is logged, or in the log alone if there
// is no object. The check for readyz has it always.
func (r *Registration) report(ctx context.Context) {
	r.result.measure()
	r.problem.Store(r.result.problem())
	now := r.result.reasons()
	if r.reported == now {
		return
	}
	r.reported = now
	log := logf.FromContext(ctx)
	switch first := firstProblem(r.result.parts()...); {
	case r.result.obstacle != nil:
		log.Info("The instance can't register yet", "reason", r.result.obstacle.reason, "message", r.result.obstacle.message)
	case first != nil:
		r.event(corev1.EventTypeWarning, first.Reason, first.Message)
		r.warned = true
	default:
		if !r.warned { // nobody waits for this news
			log.Info("The instance holds its scope")
		} else {
			r.event(corev1.EventTypeNormal, addonsv1.ScopeHeldReason, "The instance holds its scope: "+r.o.Scope.Describe())
			r.warned = false
		}
		if r.result.api.Message != "" {
			r.event(corev1.EventTypeWarning, r.result.api.Reason, r.result.api.Message)
		}
	}
}

func (r *Registration) event(kind, reason, note string) {
	const longest = 1024 // bytes, of the API
	r.recorder.Eventf(r.object, nil, kind, reason, "Register", "%s", message.Shorten(note, longest))
}

// problem returns why the process isn't ready, "" if it is. A process that waits for its own
// predecessor is ready if it could go on, as one that waits for the lease is. Otherwise a rollout, which waits
// for the new process before it ends the old one, would wait for ever.
func (f *roundResult) problem() string {
	switch {
	case f.obstacle != nil && f.obstacle.standby:
		return describe(firstProblem(f.api))
	case f.obstacle != nil:
		return f.obstacle.reason + ": " + f.obstacle.message
	}
	return describe(firstProblem(f.parts()...))
}

// describe returns the reason and the message of a condition, "" of none.
func describe(c *metav1.Condition) string {
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// Ready is a check for readyz: whether the instance holds its scope, or stands by.
func (r *Registration) Ready(*http.Request) error {
	problem := &r.problem
	if r.elected != nil {
		select {
		case <-r.elected:
		default:
			problem = &r.standby // another replica leads
		}
	}
	if text := problem.Load().(string); text != "" {
		return errors.New(text)
	}
	return nil
}
