// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

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
