// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"time"

	"github.com/cluster-chandler/chandler/internal/retry"
)

// When somebody else sets the same field again and again, it is set back after a pause, which
// doubles each time. The first few times are free.
const (
	freeRepairs = 5
	// contestGap is how long after it was set back a field has to stay for the next change
	// to be another story.
	contestGap = time.Minute
)

// Contest is about one object that others change again whenever it is repaired.
type Contest struct {
	fields  []string
	repairs int
	last    time.Time
}

// IsFight reports whether somebody else insists on a field.
func (c *Contest) IsFight() bool { return c.repairs >= freeRepairs }

// IsOver reports whether the object has stayed as it is for long enough to forget the contest.
func (c *Contest) IsOver(now time.Time) bool { return now.Sub(c.last) > c.pause()+contestGap }

// Wait returns how long the changes are to stay; zero if they may be set back now. An object
// that is gone has no changes.
func (c *Contest) Wait(now time.Time, changes []Change) time.Duration {
	if c.IsOver(now) || !slices.ContainsFunc(namesOf(changes), func(name string) bool { return slices.Contains(c.fields, name) }) {
		*c = Contest{}
	}
	return max(0, c.last.Add(c.pause()).Sub(now))
}

// Repaired notes that the changes were set back.
func (c *Contest) Repaired(now time.Time, changes []Change) {
	c.fields, c.last = namesOf(changes), now
	c.repairs++
}

// pause returns the least time between the last repair and the next.
func (c *Contest) pause() time.Duration {
	if !c.IsFight() {
		return 0
	}
	return retry.Contest.After(c.repairs - freeRepairs)
}

func namesOf(changes []Change) []string {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, c.Path.String())
	}
	if len(names) == 0 {
		return []string{""} // the whole object
	}
	return names
}
