// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates what is said of objects in CEL, within bounds of time and memory.
package expression

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Bytes of all that is kept of expressions that were compiled, and of what is wrong with others.
const (
	maxKept      = 24 << 20
	maxVerdicts  = 4 << 20
	maxFault     = 2 << 10  // of one expression
	programBytes = 20 << 10 // of one program, besides its nodes
	nodeKept     = 128
)

var (
	// programs are those that were compiled last. They are safe for concurrent use.
	programs = budget.NewCache[[sha256.Size]byte](nil, maxKept, func(p Program) int64 { return p.size })
	// verdicts are why expressions can't be used, "" of those that can.
	verdicts = budget.NewCache[[sha256.Size]byte](nil, maxVerdicts, func(fault string) int64 { return int64(len(fault)) + 192 })
)

// Program is a compiled expression of type bool.
type Program struct {
	program cel.Program
	text    string
	size    int64 // in memory, about
}

// Of compiles a condition on objects. Each is a variable of its key's name.
func Of(c *addonsv1.ObjectsCondition) (Program, error) {
	return Compile(c.Expression, variablesOf(c)...)
}

func variablesOf(c *addonsv1.ObjectsCondition) []string {
	names := make([]string, 0, len(c.Objects))
	for _, object := range c.Objects {
		names = append(names, object.Key)
	}
	return names
}

// Check returns why [Of] can't compile a condition, nil if it can. It keeps the answer for longer than a program is kept.
func Check(c *addonsv1.ObjectsCondition) error {
	return CheckText(c.Expression, variablesOf(c)...)
}

// CheckText returns why [Compile] can't compile an expression, nil if it can. It keeps the answer as [Check] does.
func CheckText(text string, variables ...string) error {
	fault, found := verdicts.Get(keyOf(text, variables))
	if !found {
		_, err := Compile(text, variables...)
		return err
	}
	if fault != "" {
		return errors.New(fault)
	}
	return nil
}

// keyOf returns a digest of all that a program depends on.
func keyOf(text string, variables []string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(variables, " ") + "\n" + text))
}

// Compile compiles an expression with variables. Its error holds the place of the fault.
func Compile(text string, variables ...string) (Program, error) {
	key := keyOf(text, variables)
	if known, ok := programs.Get(key); ok {
		return known, nil
	}
	program, err := compile(text, variables)
	if err != nil {
		err = errors.New(message.Shorten(err.Error(), maxFault))
		verdicts.Put(budget.Tenant{}, key, err.Error())
		return Program{}, err
	}
	verdicts.Put(budget.Tenant{}, key, "")
	programs.Put(budget.Tenant{}, key, program)
	return program, nil
}

func compile(text string, variables []string) (Program, error) {
	if parts := partsOf(text); parts > maxParts { // it isn't even parsed
		return Program{}, fmt.Errorf("the expression has %d words and signs, a macro such as all() being %d, at most %d; divide it into several",
			parts, macroParts, maxParts)
	}
	base, err := environment()
	if err != nil {
		return Program{}, err
	}
	declared := make([]cel.EnvOption, 0, len(variables))
	for _, name := range variables {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	env, err := base.Extend(declared...)
	if err != nil {
		return Program{}, err
	}
	parsed, issues := env.Parse(text)
	if err := issues.Err(); err != nil {
		return Program{}, err
	}
	if err := checkSyntax(parsed.NativeRep()); err != nil {
		return Program{}, err
	}
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		return Program{}, err
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return Program{}, fmt.Errorf("the expression is of type %s, not bool", out)
	}
	// The base makes the program, as a program keeps its environment.
	program, err := base.Program(checked, cel.CustomDecoratorV2(bounded), cel.InterruptCheckFrequency(celconfig.CheckFrequency),
		cel.CostTracking(&costs{}), cel.CostLimit(maxCost))
	return Program{program, text, int64(programBytes + len(text) + nodeKept*ast.NodeCount(checked.NativeRep()))}, err
}

// Holds evaluates the expression on the variables. An error, as of a field that isn't there yet, means that it doesn't
// hold. Its text has nothing of the variables' values.
func (p Program) Holds(ctx context.Context, variables map[string]any) (bool, error) {
	result, _, err := p.program.ContextEval(ctx, variables)
	if err != nil {
		return false, p.causeOf(err)
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression is of type %s, not bool", result.Type().TypeName())
	}
	return holds, nil
}

// words of an expression. A field that it names isn't a value.
var words = regexp.MustCompile(`\w+`)

// Causes of errors. CEL's own words quote values, which may be of a Secret.
var (
	errCost      = errors.New("it takes too many steps, or too much memory, on these objects; look at fewer or smaller fields")
	errCancelled = errors.New("the manager ended its evaluation")
	errOther     = errors.New("it can't be evaluated on these objects, as a value isn't of the form that it needs")
	// causes are those of errors whose texts begin so.
	causes = map[string]error{
		"no such key":         errors.New("it needs a field that isn't there"),
		"no such attribute":   errors.New("it needs a field that isn't there"),
		"no such overload":    errors.New("a value isn't of the type that it needs, or a field isn't there"),
		"index out of bounds": errors.New("it needs an element that isn't there"),
	}
)

func (p Program) causeOf(err error) error {
	cancelled := interpreter.EvalCancelledError{}
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return errCost
	case errors.As(err, &cancelled), errors.Is(err, interpreter.InterruptError{}):
		return errCancelled
	}
	text := err.Error()
	for start, cause := range causes {
		if !strings.HasPrefix(text, start) {
			continue
		}
		if field := strings.TrimPrefix(text, "no such key: "); field != text && slices.Contains(words.FindAllString(p.text, -1), field) {
			return fmt.Errorf("%w: %s", cause, field)
		}
		return cause
	}
	return errOther
}
