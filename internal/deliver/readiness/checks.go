// SPDX-License-Identifier: Apache-2.0

// Package readiness tells whether objects are ready: by what their kind's status
// says (kstatus), then by checks in CEL.
package readiness

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/library"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

const (
	// costLimit of one evaluation, in CEL's cost units: a tenth of what the API
	// server grants a rule (k8s.io/apiserver/pkg/apis/cel, PerCallLimit).
	costLimit = 100_000
	// interruptEvery is the number of comprehension steps between looks at the limit.
	interruptEvery = 100
	// maxPrograms bounds the compiled expressions that are kept.
	maxPrograms = 1024
)

// Compiler compiles checks, each expression once. It is safe for concurrent use.
type Compiler struct {
	env func() (*cel.Env, error)

	mu       sync.Mutex
	programs map[string]cel.Program
}

// NewCompiler returns a Compiler.
func NewCompiler() *Compiler {
	return &Compiler{programs: make(map[string]cel.Program), env: sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewEnv(
			cel.Variable("self", cel.DynType),
			cel.DefaultUTCTimeZone(true),
			cel.EagerlyValidateDeclarations(true),
			ext.Strings(ext.StringsVersion(2)),
			cel.OptionalTypes(),
			library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.SemverLib(),
		)
	})}
}

// Compile compiles checks. The error names the check that can't be.
func (c *Compiler) Compile(checks []addonsv1.ReadinessCheck) (Checks, error) {
	compiled := make(Checks, 0, len(checks))
	for i, check := range checks {
		program, err := c.program(check.Expression)
		if err != nil {
			return nil, fmt.Errorf("readiness[%d].expression: %w", i, err)
		}
		compiled = append(compiled, Check{ReadinessCheck: check, program: program})
	}
	return compiled, nil
}

func (c *Compiler) program(expression string) (cel.Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.programs[expression]; ok {
		return p, nil
	}
	env, err := c.env()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("is a %s, not true or false", out)
	}
	p, err := env.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, err
	}
	if len(c.programs) >= maxPrograms {
		clear(c.programs)
	}
	c.programs[expression] = p
	return p, nil
}

// Check is a compiled check.
type Check struct {
	addonsv1.ReadinessCheck
	program cel.Program
}

// Checks are an add-on's.
type Checks []Check

// For returns the checks that are about an object.
func (c Checks) For(o *unstructured.Unstructured) Checks {
	var matching Checks
	for _, check := range c {
		if check.matches(o) {
			matching = append(matching, check)
		}
	}
	return matching
}

// Unmatched returns the first check that names an object which isn't among these.
func (c Checks) Unmatched(objects []*unstructured.Unstructured) (Check, bool) {
next:
	for _, check := range c {
		if check.Name == "" {
			continue
		}
		for _, o := range objects {
			if check.matches(o) {
				continue next
			}
		}
		return check, true
	}
	return Check{}, false
}

func (c Check) matches(o *unstructured.Unstructured) bool {
	return c.APIVersion == o.GetAPIVersion() && c.Kind == o.GetKind() && (c.Name == "" || c.Name == o.GetName())
}

// holds evaluates the check. An error counts as false, as of a field that isn't
// there yet.
func (c Check) holds(o *unstructured.Unstructured) bool {
	out, _, err := c.program.Eval(map[string]any{"self": o.Object})
	if err != nil {
		return false
	}
	held, ok := out.Value().(bool)
	return ok && held
}
