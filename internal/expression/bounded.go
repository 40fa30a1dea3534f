// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Bounds of regular expressions. A match takes time with the product of the text's bytes and the program's instructions.
const (
	maxPatternBytes = 256
	maxInstructions = 500
	maxProduct      = 4_000_000
	maxFound        = 1000 // texts that findAll returns
)

// searches are the functions whose second argument is a pattern, by their names.
var searches = map[string]func(pattern *regexp.Regexp, text string, rest []ref.Val) ref.Val{
	"matches": func(pattern *regexp.Regexp, text string, _ []ref.Val) ref.Val {
		return types.Bool(pattern.MatchString(text))
	},
	"find": func(pattern *regexp.Regexp, text string, _ []ref.Val) ref.Val {
		return types.String(pattern.FindString(text))
	},
	"findAll": findAll,
}

func findAll(pattern *regexp.Regexp, text string, rest []ref.Val) ref.Val {
	limit := maxFound + 1
	if len(rest) > 0 {
		if wanted, ok := rest[0].(types.Int); ok && wanted >= 0 {
			limit = int(min(wanted, maxFound+1))
		}
	}
	found := pattern.FindAllString(text, limit)
	if len(found) > maxFound {
		return types.NewErr("findAll finds more than %d texts", maxFound)
	}
	return types.NewStringList(types.DefaultTypeAdapter, found)
}

// bounded returns a call that could take long as one that can't. Other nodes of a program are returned as they are.
func bounded(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := node.(interpreter.InterpretableCall)
	switch {
	case !ok:
		return node, nil
	case call.Function() == "quantity" || call.Function() == "isQuantity":
		return boundedQuantity(call)
	}
	return boundedSearch(call)
}

// boundedSearch returns the call of a function with a literal pattern as one that is bounded.
func boundedSearch(call interpreter.InterpretableCall) (interpreter.InterpretableCall, error) {
	search, found := searches[call.Function()]
	if !found || len(call.Args()) < 2 {
		return call, nil
	}
	literal, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return nil, fmt.Errorf("the pattern of the function %s has to be a literal text: one that is computed can't be bounded", call.Function())
	}
	text, ok := literal.Value().(types.String)
	if !ok {
		return call, nil
	}
	pattern, instructions, err := compilePattern(string(text))
	if err != nil {
		return nil, fmt.Errorf("the pattern of the function %s: %w", call.Function(), err)
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		text, ok := args[0].(types.String)
		switch {
		case !ok:
			return types.MaybeNoSuchOverloadErr(args[0])
		case len(text) > maxProduct/instructions:
			return types.NewErr("the text is too long for the pattern")
		}
		return search(pattern, string(text), args[2:])
	}), nil
}

// compilePattern returns the compiled pattern and about how many instructions it has.
func compilePattern(text string) (*regexp.Regexp, int, error) {
	if len(text) > maxPatternBytes {
		return nil, 0, fmt.Errorf("it has %d bytes, at most %d", len(text), maxPatternBytes)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	instructions := instructionsOf(parsed)
	if instructions > maxInstructions {
		return nil, 0, fmt.Errorf("it has about %d instructions, at most %d; repeat less", instructions, maxInstructions)
	}
	pattern, err := regexp.Compile(text)
	return pattern, instructions, err
}

// instructionsOf returns about how many instructions a pattern is compiled to: a repetition is written out.
func instructionsOf(re *syntax.Regexp) int {
	sum := 1
	if re.Op == syntax.OpLiteral {
		sum += len(re.Rune)
	}
	for _, sub := range re.Sub {
		sum += instructionsOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		sum *= max(re.Min, re.Max, 1)
	}
	return sum
}

const maxQuantityBytes = 64

// manyDigits is an exponent that takes long: a quantity such as 1e9999999 is calculated with all its digits.
var manyDigits = regexp.MustCompile(`[eE][+-]?[0-9]{3}`)

// boundedQuantity returns the call of a function on the text of a quantity as one that is bounded.
func boundedQuantity(call interpreter.InterpretableCall) (interpreter.InterpretableCall, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	bindings, err := env.Functions()[call.Function()].Bindings()
	if err != nil || len(bindings) == 0 || bindings[0].Unary == nil || len(call.Args()) != 1 {
		return nil, fmt.Errorf("the function %s has no binding: %w", call.Function(), err)
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if text, ok := args[0].(types.String); ok && (len(text) > maxQuantityBytes || manyDigits.MatchString(string(text))) {
			return types.NewErr("the quantity has too many digits")
		}
		return bindings[0].Unary(args[0])
	}), nil
}
