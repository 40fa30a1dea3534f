// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"maps"
	"slices"
	"text/template"
	"time"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// timeFuncs are sprig's functions that look at the clock, bound to one remembered time.
func (g *Generator) timeFuncs(all template.FuncMap) template.FuncMap {
	var (
		date           = all["date"].(func(string, any) string)
		dateInZone     = all["dateInZone"].(func(string, any, string) string)
		htmlDate       = all["htmlDate"].(func(any) string)
		htmlDateInZone = all["htmlDateInZone"].(func(any, string) string)
		durationRound  = all["durationRound"].(func(any) string)
	)
	inZone := func(format string, d any, zone string) string { return dateInZone(format, g.timeOr(d), zone) }
	return template.FuncMap{
		"now":            g.now,
		"date":           func(format string, d any) string { return date(format, g.timeOr(d)) },
		"dateInZone":     inZone,
		"date_in_zone":   inZone,
		"htmlDate":       func(d any) string { return htmlDate(g.timeOr(d)) },
		"htmlDateInZone": func(d any, zone string) string { return htmlDateInZone(g.timeOr(d), zone) },
		"ago": func(d any) string {
			var t time.Time
			switch d := d.(type) {
			case time.Time:
				t = d
			case int64:
				t = time.Unix(d, 0)
			case int:
				t = time.Unix(int64(d), 0)
			default:
				t = g.now()
			}
			return g.now().Sub(t).Round(time.Second).String()
		},
		"durationRound": func(d any) string {
			if t, ok := d.(time.Time); ok {
				return durationRound(int64(g.now().Sub(t)))
			}
			return durationRound(d)
		},
	}
}

// now is the time at which `now` was first asked for, in this rendering or an earlier one.
func (g *Generator) now() time.Time {
	for _, known := range []string{g.time, g.earlier[job.NowKey], g.made[job.NowKey]} {
		if t, err := time.Parse(time.RFC3339Nano, known); err == nil {
			t = t.UTC()
			g.keepTime(t.Format(time.RFC3339Nano))
			return t
		}
	}
	t := g.clock().UTC().Round(0) // without the monotonic clock, as when it is read again
	g.made[job.NowKey] = t.Format(time.RFC3339Nano)
	g.keepTime(g.made[job.NowKey])
	return t
}

func (g *Generator) keepTime(text string) {
	if g.time == "" {
		g.take(len(job.NowKey) + len(text))
		g.time = text
	}
}

// timeOr is d if sprig takes it for a time, and now if sprig would look at the clock.
func (g *Generator) timeOr(d any) any {
	switch d.(type) {
	case time.Time, *time.Time, int, int32, int64:
		return d
	}
	return g.now()
}

// sortedKeys is sprig's keys, which has Go's random order of maps.
func sortedKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

// sortedValues is sprig's values, in the order of their keys.
func sortedValues(dict map[string]any) []any {
	values := []any{}
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		values = append(values, dict[key])
	}
	return values
}
