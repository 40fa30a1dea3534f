// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// findings are what a round found out.
type findings struct {
	obstacle               *obstacle
	api, namespaces, scope metav1.Condition
}

// obstacle keeps the instance from writing its object, so it can't say it there.
type obstacle struct {
	reason, message string
	// standby: nothing is wrong, another process of the instance is at work.
	standby bool
}

// parts are the conditions that Ready sums up, in the order in which they have to
// become True.
func (f *findings) parts() []metav1.Condition {
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
func (f *findings) ready() metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	if problem := firstProblem(f.parts()...); problem != nil {
		c.Status, c.Reason, c.Message = problem.Status, problem.Reason, problem.Message
	}
	return c
}

// reasons returns what is equal for findings that tell people the same. Messages aren't in it,
// as they may name a passing error.
func (f *findings) reasons() string {
	all := []string{f.api.Reason, f.namespaces.Reason, f.scope.Reason}
	if f.obstacle != nil {
		all = append(all, f.obstacle.reason)
	}
	return strings.Join(all, " ")
}

// actionRegister is the action that events are about.
const actionRegister = "Register"

// report tells people what a round found out, once for each change: in the log, and as
// an event if there is an object. The check for readyz has it always.
func (r *Registration) report(ctx context.Context) {
	r.setProblem()
	now := r.findings.reasons()
	if r.reported == now {
		return
	}
	r.reported = now
	log := logf.FromContext(ctx)
	switch first := firstProblem(r.findings.parts()...); {
	case r.findings.obstacle != nil:
		log.Info("The instance can't register yet", "reason", r.findings.obstacle.reason, "message", r.findings.obstacle.message)
	case first != nil:
		log.Info("The instance waits", "condition", first.Type, "reason", first.Reason, "message", first.Message)
		r.event(corev1.EventTypeWarning, first.Reason, first.Message)
		r.warned = true
	default:
		log.Info("The instance holds its scope")
		if r.warned { // else nobody waits for this news
			r.event(corev1.EventTypeNormal, addonsv1.ScopeHeldReason, "The instance holds its scope: "+r.o.Scope.Describe())
		}
	}
}

func (r *Registration) tookOver(ctx context.Context, former string) {
	logf.FromContext(ctx).Info("Took the ProviderInstance over", "formerHolder", former)
	r.event(corev1.EventTypeNormal, "TakenOver", fmt.Sprintf("%s took over from %s, which ended without a word", r.holder, former))
}

func (r *Registration) event(kind, reason, note string) {
	const longest = 1024 // bytes, of the API
	r.recorder.Eventf(r.object, nil, kind, reason, actionRegister, "%s", note[:min(len(note), longest)])
}

// setProblem says why the process isn't ready. A process that waits for its own
// predecessor is ready, as one that waits for the lease is: else a rollout, which
// waits for the new one before it ends the old one, would wait for ever.
func (r *Registration) setProblem() {
	problem := ""
	if o := r.findings.obstacle; o != nil && !o.standby {
		problem = o.reason + ": " + o.message
	} else if c := r.findings.ready(); o == nil && c.Status != metav1.ConditionTrue {
		problem = c.Reason + ": " + c.Message
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = problem
}

// Ready is a check for readyz: whether the instance holds its scope, or stands by.
func (r *Registration) Ready(*http.Request) error {
	if r.elected != nil {
		select {
		case <-r.elected:
		default:
			return nil // another replica leads
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem != "" {
		return errors.New(r.problem)
	}
	return nil
}
