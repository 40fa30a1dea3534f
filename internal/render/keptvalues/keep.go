// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// maxUnused bounds the values that are kept of calls that aren't made any more, in bytes with
// their keys: a component that is switched off may be switched on again.
const maxUnused = 64 << 10

// Used returns the values of the last round, and values of previous calls as far as there is room.
func (g *Generator) Used() job.Generated {
	all := job.Generated{}
	if g.time != "" {
		all[job.NowKey] = g.time
	}
	room, inUse := g.room, map[*previousValue]bool{}
	for _, c := range g.calls {
		inUse[c.from] = true
		value := previousValue{call: c.key, position: c.position, places: c.places}
		if room -= len(value.key()) - len(c.key); room < 0 {
			value.places = places{}
		}
		all[value.key()] = c.text
	}
	var unused []*previousValue
	for _, values := range g.previous {
		for _, value := range values {
			if !inUse[value] && value.verdict != unfit && !g.due(value) {
				unused = append(unused, value)
			}
		}
	}
	slices.SortFunc(unused, func(a, b *previousValue) int { return cmp.Or(a.unused-b.unused, strings.Compare(a.key(), b.key())) })
	room = min(maxUnused, room)
	for _, value := range unused {
		kept := *value
		kept.unused++
		if room -= len(kept.key()) + len(kept.text); room < 0 {
			break
		}
		all[kept.key()] = kept.text
	}
	return all
}
