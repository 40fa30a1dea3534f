// SPDX-License-Identifier: Apache-2.0

// Package readiness tells whether objects are ready: by what their kind's status
// says (kstatus), then by checks in CEL.
package readiness

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
