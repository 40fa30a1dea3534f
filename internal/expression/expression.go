// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates what is said of objects in CEL.
package expression

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/lru"
)

// Limits of one evaluation, in CEL's cost units.
const (
	// ruleCost is about the limit of one rule in a CustomResourceDefinition.
	ruleCost = 10_000_000
	// CheckCost is a tenth of what the API server grants a call (k8s.io/apiserver/pkg/apis/cel, PerCallLimit).
	CheckCost = 100_000
)

// programs are those that were compiled last. They are safe for concurrent use.
var programs = lru.New[string](1024, func(cel.Program) int64 { return 1 })

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		ext.Strings(ext.StringsVersion(2)),
		cel.OptionalTypes(),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.SemverLib(),
	)
})

// Program is a compiled expression of type bool.
type Program struct{ program cel.Program }

// Of compiles a condition on objects. Each is a variable of its key's name.
func Of(c *addonsv1.ObjectsCondition) (Program, error) {
	names := make([]string, 0, len(c.Objects))
	for _, object := range c.Objects {
		names = append(names, object.Key)
	}
	return Compile(c.Expression, ruleCost, names...)
}

// Compile compiles an expression with variables. Its error holds the place of the fault.
func Compile(text string, cost uint64, variables ...string) (Program, error) {
	key := fmt.Sprint(cost, " ", strings.Join(variables, " "), " ", text)
	if known, ok := programs.Get(key); ok {
		return Program{known}, nil
	}
	env, err := environment()
	if err != nil {
		return Program{}, err
	}
	declared := make([]cel.EnvOption, 0, len(variables))
	for _, name := range variables {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	if env, err = env.Extend(declared...); err != nil {
		return Program{}, err
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return Program{}, err
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return Program{}, fmt.Errorf("the expression is of type %s, not bool", out)
	}
	program, err := env.Program(ast, cel.CostLimit(cost))
	if err == nil {
		programs.Put(key, program)
	}
	return Program{program}, err
}

// Holds evaluates the expression on the variables. An error, as of a field that isn't there yet,
// means that it doesn't hold.
func (p Program) Holds(variables map[string]any) (bool, error) {
	result, _, err := p.program.Eval(variables)
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression is of type %s, not bool", result.Type().TypeName())
	}
	return holds, nil
}
