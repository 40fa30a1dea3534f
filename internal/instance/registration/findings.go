// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
