// SPDX-License-Identifier: Apache-2.0

// Package readiness tells whether objects are ready: by what their kind's status
// says (kstatus), then by checks in CEL.
package readiness

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
)

// Compile compiles checks. The error names the check that can't be.
func Compile(checks []addonsv1.ReadinessCheck) (Checks, error) {
	compiled := make(Checks, 0, len(checks))
	for i, check := range checks {
		program, err := expression.Compile(check.Expression, expression.CheckCost, "self")
		if err != nil {
			return nil, fmt.Errorf("readiness[%d].expression: %w", i, err)
		}
		compiled = append(compiled, Check{ReadinessCheck: check, program: program})
	}
	return compiled, nil
}

// Verify returns why a check can't be compiled, nil if it can.
func Verify(check addonsv1.ReadinessCheck) error {
	return expression.CheckText(check.Expression, expression.CheckCost, "self")
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
