// SPDX-License-Identifier: Apache-2.0

package generated

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// previousValue is a value of an earlier rendering. Its key in [Generated] has six parts with slashes
// between them. They are the function, the hash of its arguments, the number of renderings since
// the value was used last, the call's position, and its exact and rough places. The keys of
// earlier releases had two parts: the hash was of the call's number, too.
type previousValue struct {
	call     string // its key
	text     string
	unused   int
	position string
	places
	numbered  bool // its key was that of an earlier release
	live      bool // it was read from a live object
	evaluated bool // by its first call
	odd       bool // it isn't what the function returns, but may be a person's
	broken    bool // it is nothing to return
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
	f := &previousValue{
		call: parts[0] + "/" + parts[1], text: text, unused: int(unused), position: parts[3],
		places: places{exact: list(parts[4]), rough: list(parts[5])},
	}
	return f, err == nil && len(f.exact) <= maxPlaces && len(f.rough) <= maxPlaces
}

func (f *previousValue) key() string {
	return strings.Join([]string{f.call, strconv.Itoa(f.unused), f.position, strings.Join(f.exact, ","), strings.Join(f.rough, ",")}, "/")
}

// fits reports whether a call may get the value. All calls with its key have the same arguments.
func (f *previousValue) fits(evaluate func(text string) (string, verdict)) bool {
	if !f.evaluated {
		var v verdict
		f.text, v = evaluate(f.text)
		f.evaluated, f.odd, f.broken = true, v == odd, v == unfit
	}
	return !f.broken
}

func previousValuesOf(earlier job.Generated) map[string][]*previousValue {
	all := map[string][]*previousValue{}
	for _, key := range slices.Sorted(maps.Keys(earlier)) {
		if f, ok := parsePrevious(key, earlier[key]); ok {
			all[f.call] = append(all[f.call], f)
		}
	}
	return all
}
