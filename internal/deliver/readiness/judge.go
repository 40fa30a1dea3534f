// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"cmp"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

// Judge returns how to tell whether an object is ready, given its checks.
func (c Checks) Judge() observe.Judge {
	return func(o *unstructured.Unstructured) observe.Status {
		s := byKind(o)
		if s.Phase != observe.Current {
			return s
		}
		for _, check := range c {
			if !check.holds(o) {
				s.Phase = observe.InProgress
				s.Message = fmt.Sprintf("Readiness check is not true: %s", check.Expression)
				return s
			}
		}
		return s
	}
}

// byKind is what kstatus says.
func byKind(o *unstructured.Unstructured) observe.Status {
	s := observe.Status{UID: o.GetUID()}
	result, err := status.Compute(o)
	if err != nil {
		s.Message = "Its status can't be read: " + err.Error()
		return s
	}
	s.Message = cmp.Or(result.Message, string(result.Status))
	switch result.Status {
	case status.CurrentStatus:
		s.Phase = observe.Current
	case status.FailedStatus:
		s.Phase = observe.Failed
	default:
		s.Phase = observe.InProgress
	}
	return s
}

// HookDone tells whether a hook's object is done, as Helm sees it: a Job when it
// is complete, a Pod when it has succeeded, anything else at once.
func HookDone(o *unstructured.Unstructured) observe.Status {
	s := observe.Status{UID: o.GetUID(), Phase: observe.Current}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		s.Phase, s.Message = observe.InProgress, "Job is running"
		for _, kind := range []string{"Failed", "Complete"} {
			message, ok := condition(o, kind)
			if !ok {
				continue
			}
			s.Message = message
			s.Phase = observe.Current
			if kind == "Failed" {
				s.Phase = observe.Failed
			}
			return s
		}
	case "Pod":
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		s.Message = "Pod is " + cmp.Or(phase, "not scheduled yet")
		switch phase {
		case "Succeeded":
		case "Failed":
			s.Phase = observe.Failed
		default:
			s.Phase = observe.InProgress
		}
	}
	return s
}

// condition returns reason and message of a condition that is true.
func condition(o *unstructured.Unstructured, kind string) (string, bool) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != kind || fields["status"] != "True" {
			continue
		}
		reason, _ := fields["reason"].(string)
		message, _ := fields["message"].(string)
		if reason != "" && message != "" {
			return reason + ": " + message, true
		}
		return cmp.Or(message, reason, kind), true
	}
	return "", false
}

// StillThere tells that an object that is to go still exists, and what it waits for.
func StillThere(o *unstructured.Unstructured) observe.Status {
	s := observe.Status{UID: o.GetUID(), Phase: observe.InProgress}
	if f := o.GetFinalizers(); len(f) > 0 {
		s.Message = fmt.Sprintf("It waits for its finalizers %v", f)
	}
	return s
}
