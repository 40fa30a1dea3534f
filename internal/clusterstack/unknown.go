// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// maxUnknown bounds how many unknown keys are reported.
const maxUnknown = 16

// unknownKeys compares a decoded tree with the type of the struct that it was decoded
// into. It returns the paths of keys without a field, sorted. They begin with path, that
// of the tree.
func unknownKeys(path string, tree any, v any) []string {
	var found []string
	walk(path, tree, reflect.TypeOf(v), &found)
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > maxUnknown {
		found = append(found[:maxUnknown], fmt.Sprintf("and %d more", len(found)-maxUnknown))
	}
	return found
}

func walk(path string, tree any, t reflect.Type, found *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch node := tree.(type) {
	case map[string]any:
		for key, value := range node {
			below := strings.TrimPrefix(path+"."+key, ".")
			switch t.Kind() {
			case reflect.Map:
				walk(below, value, t.Elem(), found)
			case reflect.Struct:
				if field, ok := fieldOf(t, key); ok {
					walk(below, value, field, found)
				} else {
					*found = append(*found, below)
				}
			}
		}
	case []any:
		for _, value := range node {
			if t.Kind() == reflect.Slice {
				walk(path, value, t.Elem(), found)
			}
		}
	}
}

// fieldOf returns the type of the field that JSON decodes a key into, which ignores
// case.
func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if strings.EqualFold(name, key) {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}
