// SPDX-License-Identifier: Apache-2.0

// Package readiness tells whether objects are ready: by what their kind's status
// says (kstatus), then by checks in CEL.
package readiness

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/expression"
)

// Compile compiles checks. The error names the check that can't be.
func Compile(checks []addonsv1.ReadinessCheck) (Checks, error) {
	compiled := make(Checks, 0, len(checks))
	for i, check := range checks {
		program, err := expression.Compile(check.Expression, "self")
		if err != nil {
			return nil, fmt.Errorf("readiness[%d].expression: %w", i, err)
		}
		compiled = append(compiled, Check{ReadinessCheck: check, program: program})
	}
	return compiled, nil
}

// Verify returns why a check can't be compiled, nil if it can.
func Verify(check addonsv1.ReadinessCheck) error {
	return expression.CheckText(check.Expression, "self")
}

// Check is a compiled check.
type Check struct {
	addonsv1.ReadinessCheck
	program expression.Program
}

// Checks are an add-on's.
type Checks []Check

// For returns the checks that are about an object.
func (c Checks) For(o *unstructured.Unstructured) Checks {
	return slices.DeleteFunc(slices.Clone(c), func(check Check) bool { return !check.matches(o) })
}

// IsAbout reports whether a check is about objects of the kind.
func IsAbout(checks []addonsv1.ReadinessCheck, kind schema.GroupKind) bool {
	return slices.ContainsFunc(checks, func(check addonsv1.ReadinessCheck) bool {
		return schema.FromAPIVersionAndKind(check.APIVersion, check.Kind).GroupKind() == kind
	})
}

// FirstUnmet returns the first of the checks about an object that isn't true of it, nil if all are. An error counts as
// false, as of a field that isn't there yet. It is returned, too.
func (c Checks) FirstUnmet(ctx context.Context, o *unstructured.Unstructured) (*Check, error) {
	for _, check := range c.For(o) {
		if holds, err := check.program.Holds(ctx, map[string]any{"self": o.Object}); err != nil || !holds {
			return &check, err
		}
	}
	return nil, nil
}

// Unmatched returns the first check that names an object which isn't among these.
func (c Checks) Unmatched(objects []*unstructured.Unstructured) (Check, bool) {
	i := slices.IndexFunc(c, func(check Check) bool { return check.Name != "" && !slices.ContainsFunc(objects, check.matches) })
	if i < 0 {
		return Check{}, false
	}
	return c[i], true
}

func (c Check) matches(o *unstructured.Unstructured) bool {
	return c.APIVersion == o.GetAPIVersion() && c.Kind == o.GetKind() && (c.Name == "" || c.Name == o.GetName())
}

// Evaluate returns how to tell whether an object is ready, given its checks.
func (c Checks) Evaluate() observe.Evaluator {
	return func(o *unstructured.Unstructured) observe.Status {
		s := byKind(o)
		if s.Phase != observe.Current {
			return s
		}
		// Objects are evaluated as they come from a watch, which is in no reconcile.
		if check, err := c.FirstUnmet(context.Background(), o); check != nil {
			s.Phase, s.Final = observe.InProgress, false
			s.Message = fmt.Sprintf("Readiness check is not true: %s", check.Expression)
			if err != nil {
				s.Message += fmt.Sprintf(" (%v)", err)
			}
			if why := WhyNotReady(o); why != "" {
				s.Message += ". " + why
			}
		}
		return s
	}
}

// byKind is what kstatus says, but for a Job: to kstatus one that has started is fine.
func byKind(o *unstructured.Unstructured) observe.Status {
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); IsJob(o) && !suspended {
		return jobDone(o)
	}
	s := observe.Status{Available: availableOf(o)}
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
		if why, ok := condition(o, "ReplicaFailure", true); ok { // why no pods are made
			s.Message += ". " + why
		}
	}
	return s
}

// availableOf returns how many replicas of a workload are available, zero for any other object.
func availableOf(o *unstructured.Unstructured) int32 {
	if o.GroupVersionKind().Group != "apps" {
		return 0
	}
	replicas, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
	daemons, _, _ := unstructured.NestedInt64(o.Object, "status", "numberAvailable")
	return int32(min(max(replicas, daemons, 0), math.MaxInt32))
}

// IsJob says whether an object is a Job.
func IsJob(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind().String() == "Job.batch"
}

var workloads = sets.New("Deployment.apps", "StatefulSet.apps", "DaemonSet.apps")

// IsWorkload reports whether a kind is one of Kubernetes that keeps replicas of a pod.
func IsWorkload(kind schema.GroupKind) bool { return workloads.Has(kind.String()) }

// readyOnceThere are kinds without a status.
var readyOnceThere = sets.New(
	"ConfigMap", "Secret", "ServiceAccount",
	"Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io",
	"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
	"MutatingWebhookConfiguration.admissionregistration.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
	"NetworkPolicy.networking.k8s.io", "IngressClass.networking.k8s.io",
	"PriorityClass.scheduling.k8s.io", "StorageClass.storage.k8s.io",
)

// IsReadyOnceThere reports whether an object of Kubernetes has no status to wait for: its kind has none, or it is a Service
// without a load balancer.
func IsReadyOnceThere(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind().GroupKind().String()
	if kind == "Service" {
		balanced, _, _ := unstructured.NestedString(o.Object, "spec", "type")
		return balanced != string(corev1.ServiceTypeLoadBalancer)
	}
	return readyOnceThere.Has(kind)
}

// jobDone tells whether a Job has come to its end.
func jobDone(o *unstructured.Unstructured) observe.Status {
	s := observe.Status{Message: "Job is running"}
	for kind, phase := range map[string]observe.Phase{"Failed": observe.Failed, "Complete": observe.Current} {
		if message, ok := condition(o, kind, true); ok {
			s.Phase, s.Message, s.Final = phase, message, true
		}
	}
	return s
}

// HookDone tells whether a hook's object is done, as Helm sees it: a Job when it
// is complete, a Pod when it has succeeded, anything else at once.
func HookDone(o *unstructured.Unstructured) observe.Status {
	s := observe.Status{Phase: observe.Current}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		return jobDone(o)
	case "Pod":
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		s.Message = "Pod is " + cmp.Or(phase, "not scheduled yet")
		switch phase {
		case "Succeeded":
			s.Final = true
		case "Failed":
			s.Phase, s.Final = observe.Failed, true
		default:
			s.Phase = observe.InProgress
		}
	}
	return s
}

// WhyNotReady returns reason and message of an object's condition Ready if that isn't true, "" if it says nothing.
func WhyNotReady(o *unstructured.Unstructured) string {
	why, _ := condition(o, "Ready", false)
	return why
}

// condition returns reason and message of a condition that is true, or that isn't.
func condition(o *unstructured.Unstructured, kind string, isTrue bool) (string, bool) {
	object, err := status.GetObjectWithConditions(o.Object)
	if err != nil {
		return "", false
	}
	for _, c := range object.Status.Conditions {
		if c.Type != kind || (c.Status == corev1.ConditionTrue) != isTrue {
			continue
		}
		if c.Reason != "" && c.Message != "" {
			return c.Reason + ": " + c.Message, true
		}
		return cmp.Or(c.Message, c.Reason, kind), true
	}
	return "", false
}

// StillThere tells that an object that is to go still exists, and what it waits for.
func StillThere(o *unstructured.Unstructured) observe.Status {
	s := observe.Status{Phase: observe.InProgress}
	if f := o.GetFinalizers(); len(f) > 0 {
		s.Message = fmt.Sprintf("It waits for its finalizers %v", f)
	}
	return s
}
