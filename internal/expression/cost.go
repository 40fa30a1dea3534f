// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// maxCost of one evaluation, in CEL's units: a tenth of what the API server gives a call, as a check is about many objects.
	maxCost = 100_000
	// unitBytes are how many bytes of an argument cost a unit, as many as CEL counts for a function that reads a text once.
	unitBytes = 10
	// nodeBytes are what each value and element counts, besides texts.
	nodeBytes = 32
	// zoneCost is what a time zone costs besides: it is looked up for each call.
	zoneCost = 100
)

// costs are those that the API server has. It takes a unit for most functions, whatever they are given. Here each
// argument costs as well, by its bytes.
type costs struct{ library.CostEstimator }

// CallCost returns the cost of a call that was made.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if function == "matches" { // its costs are in CEL itself, by the same formula
		function = "find"
	}
	cost := uint64(1)
	if known := c.CostEstimator.CallCost(function, overload, args, result); known != nil {
		cost = *known
	}
	if strings.HasPrefix(function, "get") && len(args) == 2 { // as in timestamp.getHours(zone)
		cost += zoneCost
	}
	var weight weight
	for _, arg := range args {
		weight.add(arg)
	}
	cost += uint64(weight / unitBytes)
	return &cost
}

// weight is about how many bytes values have, all the way down. It stops above what an evaluation may cost.
type weight int

func (w *weight) add(value ref.Val) {
	*w += nodeBytes
	switch value := value.(type) {
	case types.String:
		*w += weight(len(value))
	case types.Bytes:
		*w += weight(len(value))
	case *types.Optional:
		if value.HasValue() {
			w.add(value.GetValue())
		}
	case traits.MutableLister, traits.MutableMapper: // a comprehension has made so much of it; its elements were weighed
	case traits.Lister:
		for all := value.Iterator(); *w <= maxCost*unitBytes && all.HasNext() == types.True; {
			w.add(all.Next())
		}
	case traits.Mapper:
		for all := value.Iterator(); *w <= maxCost*unitBytes && all.HasNext() == types.True; {
			key := all.Next()
			w.add(key)
			w.add(value.Get(key))
		}
	}
}
