// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// CEL's cost counts steps, not bytes, and counts them after they were made. So each value is also
// weighed, all the way down, before the next function gets it.
const (
	maxBytes  = 1 << 20 // that one evaluation may read and make
	nodeBytes = 32      // of each value and element, besides texts
	zoneBytes = 1 << 10 // of a time zone, which is looked up for each call
)

// meterVariable is the name of the meter among the variables. No expression can name it.
const meterVariable = "@meter"

// meter counts the bytes of one evaluation.
type meter struct{ left int }

// add counts a value that a node has, and other bytes.
func add(frame *interpreter.ExecutionFrame, value ref.Val, others int) ref.Val {
	found, _ := frame.ResolveName(meterVariable)
	m := found.(*meter)
	m.left -= others
	m.weigh(value)
	switch {
	case m.left < 0:
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded})
	case frame.CheckInterrupt():
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled})
	}
	return value
}

func (m *meter) weigh(value any) {
	if m.left < 0 {
		return
	}
	m.left -= nodeBytes
	switch value := value.(type) {
	case string:
		m.left -= len(value)
	case types.String:
		m.left -= len(value)
	case types.Bytes:
		m.left -= len(value)
	case []any:
		weighAll(m, value)
	case []ref.Val:
		weighAll(m, value)
	case []string:
		weighAll(m, value)
	case map[string]any:
		for key, element := range value {
			m.left -= len(key)
			m.weigh(element)
		}
	case map[ref.Val]ref.Val:
		for key, element := range value {
			m.weigh(key)
			m.weigh(element)
		}
	case *types.Optional:
		if value.HasValue() {
			m.weigh(value.GetValue())
		}
	case traits.MutableLister, traits.MutableMapper: // what a comprehension has so far; its elements were weighed
	case traits.Lister:
		m.weigh(value.Value())
	case traits.Mapper:
		m.weigh(value.Value())
	}
}

func weighAll[E any](m *meter, all []E) {
	for i := 0; i < len(all) && m.left >= 0; i++ {
		m.weigh(all[i])
	}
}

// Nodes of a program whose values are counted. Comprehensions and logic make nothing by themselves.
type (
	countedAttribute struct {
		interpreter.InterpretableAttribute
	}
	countedConstructor struct {
		interpreter.InterpretableConstructor
	}
	countedCall struct {
		interpreter.InterpretableCall
		others int // bytes of its arguments that are literals, and of a time zone
	}
)

func (n countedAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return add(frame, n.InterpretableAttribute.Exec(frame), 0)
}

func (n countedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return add(frame, n.InterpretableCall.Exec(frame), n.others)
}

func (n countedConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return add(frame, n.InterpretableConstructor.Exec(frame), 0)
}

// countedAdapter marks attributes that are counted already: the planner decorates one again with each field.
type countedAdapter struct{ types.Adapter }

func (n countedAttribute) Adapter() types.Adapter {
	return countedAdapter{n.InterpretableAttribute.Adapter()}
}

func literalBytes(args []interpreter.InterpretableV2) int {
	m := meter{maxBytes}
	for _, arg := range args {
		if literal, ok := arg.(interpreter.InterpretableConst); ok {
			m.weigh(literal.Value())
		}
	}
	return maxBytes - m.left
}

// counted returns a node of a program as one that is bounded and counted.
func counted(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch node := node.(type) {
	case interpreter.InterpretableAttribute:
		if _, found := node.Adapter().(countedAdapter); found {
			return node, nil
		}
		return countedAttribute{node}, nil
	case interpreter.InterpretableCall:
		call, err := bounded(node)
		others := literalBytes(node.Args())
		if strings.HasPrefix(node.Function(), "get") && len(node.Args()) == 2 { // as in timestamp.getHours(zone)
			others += zoneBytes
		}
		return countedCall{call, others}, err
	case interpreter.InterpretableConstructor:
		return countedConstructor{node}, nil
	}
	return node, nil
}
