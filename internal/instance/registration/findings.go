// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

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

// missing is the type of the first condition before the claim that isn't True.
func (f *findings) missing() string {
	for _, c := range f.parts()[:2] {
		if c.Status != metav1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// first is the first condition that isn't True, nil if all are.
func (f *findings) first() *metav1.Condition {
	for _, c := range f.parts() {
		if c.Status != metav1.ConditionTrue {
			return &c
		}
	}
	return nil
}

func (f *findings) allGood() bool { return f.obstacle == nil && f.first() == nil }

// ready is condition Ready.
func (f *findings) ready() metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	if first := f.first(); first != nil {
		c.Status, c.Reason, c.Message = first.Status, first.Reason, first.Message
	}
	return c
}

// reasons are equal for findings that tell people the same.
func (f *findings) reasons() string {
	var all []string
	if f.obstacle != nil {
		all = append(all, f.obstacle.reason)
	}
	for _, c := range f.parts() {
		all = append(all, c.Reason)
		switch c.Reason { // the message names what is to be done, and no passing error
		case addonsv1.ScopeTakenReason, addonsv1.ScopeForbiddenReason, addonsv1.APIFieldsMissingReason, addonsv1.NamespaceNotAccessibleReason:
			all = append(all, c.Message)
		}
	}
	return strings.Join(all, "\n")
}

// applyTo writes the conditions into an object.
func (f *findings) applyTo(pi *addonsv1.ProviderInstance) {
	for _, c := range append(f.parts(), f.ready()) {
		conditions.Set(pi, c)
	}
}
