// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

// costLimit bounds the evaluation of one condition, in CEL's own unit: about the
// limit of one rule in a CustomResourceDefinition.
const costLimit = 10_000_000

// Condition is a Wait that can be evaluated. It is safe for concurrent use.
type Condition struct{ program cel.Program }

// Compile checks the expression. Its error holds the place of the fault.
func (w *Wait) Compile() (*Condition, error) {
	variables := make([]cel.EnvOption, 0, len(w.Objects))
	for _, object := range w.Objects {
		variables = append(variables, cel.Variable(object.Key, cel.MapType(cel.StringType, cel.DynType)))
	}
	env, err := cel.NewEnv(variables...)
	if err != nil {
		return nil, fmt.Errorf("conditions: %w", err)
	}
	ast, issues := env.Compile(w.Expression)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("conditions: %w", err)
	}
	if out := ast.OutputType(); out != cel.BoolType && out != cel.DynType {
		return nil, fmt.Errorf("conditions: the expression is of type %s, not bool", out)
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("conditions: %w", err)
	}
	return &Condition{program}, nil
}

// Holds evaluates the condition on the objects, by key. An error, as of a field
// that isn't there yet, means that it doesn't hold.
func (c *Condition) Holds(objects map[string]map[string]any) (bool, error) {
	variables := make(map[string]any, len(objects))
	for key, object := range objects {
		variables[key] = object
	}
	result, _, err := c.program.Eval(variables)
	if err != nil {
		return false, fmt.Errorf("conditions: %w", err)
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("conditions: the expression is of type %s, not bool", result.Type().TypeName())
	}
	return holds, nil
}
