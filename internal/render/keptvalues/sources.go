// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"maps"
	"slices"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Join returns the values of several earlier renderings. Where two of them have another value for one field, the one counts that
// is in use: a rendering keeps values that it had from others, and doesn't know how these went on. Else the later one counts.
func Join(sources ...job.Generated) job.Generated {
	all := job.Generated{}
	for _, inUse := range []bool{false, true} {
		for _, values := range sources {
			texts := map[string][]string{} // by field
			some := job.Generated{}
			for key, text := range values {
				if isInUse(key) != inUse {
					continue
				}
				some[key] = text
				for _, place := range placesOf(key) {
					texts[place] = append(texts[place], text)
				}
			}
			maps.DeleteFunc(all, func(key, text string) bool {
				return slices.ContainsFunc(placesOf(key), func(place string) bool {
					return len(texts[place]) > 0 && !slices.Contains(texts[place], text)
				})
			})
			maps.Copy(all, some)
		}
	}
	return all
}

// isInUse reports whether the last rendering used the value with this key.
func isInUse(key string) bool {
	value, ok := parsePrevious(key, "")
	return !ok || value.unused == 0
}

// Disagree reports whether two renderings have another value for one field.
func Disagree(a, b job.Generated) bool { return !maps.Equal(Join(a, b), Join(b, a)) }

// placesOf returns the fields that the value with this key came out in, or else a name of its call.
func placesOf(key string) []string {
	if value, ok := parsePrevious(key, ""); ok && len(value.exact) > 0 {
		return value.exact
	}
	return []string{key}
}
