// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Layer is a layer of values with the place that it is from.
type Layer struct {
	From   string
	Values map[string]any
	// Problem is why the values couldn't be read, nil if they are there.
	Problem error
}

// Origin is a part of values with the place that all of it is from.
type Origin struct {
	// Path is such as `image.tag`, or `annotations["a.b/c"]`.
	Path  string `json:"path"`
	Value any    `json:"value"`
	// From has several places if some couldn't be read that may be the one, and none if no place has the value any more.
	From []string `json:"from"`
	// Changed says that its place has another value by now.
	Changed bool `json:"changed,omitempty"`
}

// OriginsOf returns where the values of an installed release are from, in as few parts as possible: its chart's defaults, or
// the layers of which the rest was merged, as they are now.
func OriginsOf(defaults Layer, given map[string]any, layers []Layer) []Origin {
	installed, now := tree{}, tree{}
	installed.merge(defaults.Values, 0)
	installed.merge(given, 1)
	for i := range layers {
		now.merge(layers[i].Values, i)
	}
	return originsWithin(nil, installed, now, func(key string, installed, now tree) Origin {
		is := Origin{Value: installed.values[key], From: []string{}}
		if installed.layer(key) == 0 {
			is.From = append(is.From, defaults.From)
			return is
		}
		at := now.layer(key)
		known := at >= 0 && equal(installed.values[key], now.values[key])
		if at >= 0 {
			is.From = append(is.From, layers[at].From)
		}
		for _, above := range layers[at+1:] {
			if above.Problem != nil { // it may be the one
				is.From, known = append(is.From, above.From), true
			}
		}
		is.Changed = !known
		return is
	})
}

// originsWithin returns the origins of all that is below a path.
func originsWithin(path *field.Path, installed, now tree, of func(key string, installed, now tree) Origin) (all []Origin) {
	for _, key := range slices.Sorted(maps.Keys(installed.values)) {
		at, is := child(path, key), []Origin{}
		if below, isMap := installed.values[key].(map[string]any); isMap && len(below) > 0 {
			is = originsWithin(at, installed.below(key), now.below(key), of)
		} else {
			is = append(is, of(key, installed, now))
		}
		if !slices.ContainsFunc(is, func(o Origin) bool { return !slices.Equal(o.From, is[0].From) || o.Changed != is[0].Changed }) {
			is = []Origin{{at.String(), installed.values[key], is[0].From, is[0].Changed}}
		}
		all = append(all, is...)
	}
	return all
}

// plain are keys that a path has as they are.
var plain = regexp.MustCompile(`^[\w-]+$`)

func child(path *field.Path, key string) *field.Path {
	if plain.MatchString(key) {
		return path.Child(key)
	}
	return path.Key(strconv.Quote(key))
}

// tree has merged values, and in their places the number of the layer that each one is from.
type tree struct{ values, from map[string]any }

// own is the key of the number of a map itself. A value with this key isn't found again.
const own = "\x00"

// merge merges a layer: its values, and its number for each of them, by the same function.
func (t *tree) merge(layer map[string]any, number int) {
	t.values, t.from = Merge(t.values, layer), Merge(t.from, numbered(layer, number))
}

func numbered(layer map[string]any, number int) map[string]any {
	all := map[string]any{}
	for key, value := range layer {
		if below, isMap := value.(map[string]any); isMap {
			all[key] = numbered(below, number)
		} else {
			all[key] = number
		}
	}
	all[own] = number
	return all
}

func (t tree) below(key string) tree {
	values, _ := t.values[key].(map[string]any)
	from, _ := t.from[key].(map[string]any)
	return tree{values, from}
}

// layer returns the number of the layer that a value is from, -1 if none has it.
func (t tree) layer(key string) int {
	switch is := t.from[key].(type) {
	case int:
		return is
	case map[string]any:
		return is[own].(int)
	}
	return -1
}

// equal compares values by their JSON: records may have other types of numbers than sources.
func equal(a, b any) bool {
	one, err := json.Marshal(a)
	other, wrong := json.Marshal(b)
	return err == nil && wrong == nil && string(one) == string(other)
}
