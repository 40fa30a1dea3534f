// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// MaxStatus is how many bytes the status of a plan may have as JSON, and maxGroups how many groups (groups, MaxItems).
const (
	MaxStatus = 512 << 10
	maxGroups = 50
)

// Fit cuts a status to its bound, from the end: first the fields of groups, then their changes, then the members of waves, and
// groups last. Counts stay, and say how much was cut.
func Fit(s *addonsv1.AddonPlanStatus) {
	if more := len(s.Groups) - maxGroups; more > 0 {
		s.Groups, s.TruncatedGroups = s.Groups[:maxGroups], s.TruncatedGroups+int32(more)
	}
	size := sizeOf(s)
	for _, cut := range []func(*addonsv1.PlanGroup){dropFields, dropChanges} {
		for i := len(s.Groups) - 1; i >= 0 && size > MaxStatus; i-- {
			size -= sizeOf(s.Groups[i])
			cut(&s.Groups[i])
			size += sizeOf(s.Groups[i])
		}
	}
	for i := len(s.Waves) - 1; i >= 0 && size > MaxStatus; i-- {
		size -= sizeOf(s.Waves[i].Members)
		s.Waves[i].Members = nil
	}
	for ; size > MaxStatus && len(s.Groups) > 0; s.TruncatedGroups++ {
		last := len(s.Groups) - 1
		size -= sizeOf(s.Groups[last])
		s.Groups = s.Groups[:last]
	}
}

func dropFields(g *addonsv1.PlanGroup) {
	for i := range g.Changes {
		c := &g.Changes[i]
		c.Fields, c.TruncatedFields = nil, c.TruncatedFields+int32(len(c.Fields))
	}
}

func dropChanges(g *addonsv1.PlanGroup) {
	g.Changes, g.Truncated = nil, g.Truncated+int32(len(g.Changes))
}

func sizeOf(is any) int {
	text, _ := json.Marshal(is) // plain values
	return len(text)
}
