// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// previousValue is a value of an earlier rendering. Its key in [job.Generated] has six parts with slashes
// between them. They are the function, the hash of its arguments, the number of renderings since
// the value was used last, the call's position, and its exact and rough places.
type previousValue struct {
	call        string // its key
	text        string
	unused      int
	position    string
	places           // empty if there was no room for them, or it was read from elsewhere
	fromCluster bool // it was read from a live object
	verdict     verdict
}

func parsePrevious(key, text string) (*previousValue, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 6 {
		return nil, false
	}
	unused, err := strconv.ParseUint(parts[2], 10, 31)
	list := func(joined string) []string {
		return strings.FieldsFunc(joined, func(r rune) bool { return r == ',' })
	}
	value := &previousValue{
		call: parts[0] + "/" + parts[1], text: text, unused: int(unused), position: parts[3],
		places: places{exact: list(parts[4]), rough: list(parts[5])},
	}
	if value.unused > 0 {
		value.rough = nil // others may be there now
	}
	return value, err == nil && len(value.exact) <= maxPlaces && len(value.rough) <= maxPlaces
}

func (value *previousValue) key() string {
	return strings.Join([]string{value.call, strconv.Itoa(value.unused), value.position, strings.Join(value.exact, ","), strings.Join(value.rough, ",")}, "/")
}

// fits reports whether a call may get the value. All calls with its key have the same arguments.
func (value *previousValue) fits(evaluate func(text string) (string, verdict)) bool {
	if value.verdict == 0 {
		value.text, value.verdict = evaluate(value.text)
	}
	return value.verdict != unfit
}

func previousValuesOf(earlier job.Generated) map[string][]*previousValue {
	all := map[string][]*previousValue{}
	for _, key := range slices.Sorted(maps.Keys(earlier)) {
		if value, ok := parsePrevious(key, earlier[key]); ok {
			all[value.call] = append(all[value.call], value)
		}
	}
	return all
}
