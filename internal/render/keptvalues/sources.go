// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"maps"
	"slices"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Join returns the values of several earlier renderings. Where two of them have another value for one field, the later
// one counts.
func Join(sources ...job.Generated) job.Generated {
	all := job.Generated{}
	for _, values := range sources {
		texts := map[string][]string{} // by field
		for key, text := range values {
			for _, place := range placesOf(key) {
				texts[place] = append(texts[place], text)
			}
		}
		maps.DeleteFunc(all, func(key, text string) bool {
			return slices.ContainsFunc(placesOf(key), func(place string) bool {
				return len(texts[place]) > 0 && !slices.Contains(texts[place], text)
			})
		})
		maps.Copy(all, values)
	}
	return all
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
