// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// maxUnknown bounds how many unknown keys are reported.
const maxUnknown = 16

var item = regexp.MustCompile(`\[\d+\]`)

// unknownKeys returns the paths of keys in JSON that the struct which v points at has no field for,
// sorted; path is that of the JSON.
func unknownKeys(path string, data []byte, v any) []string {
	strict, _ := kjson.UnmarshalStrict(data, reflect.New(reflect.TypeOf(v).Elem()).Interface())
	var found []string
	for _, err := range strict {
		if field, ok := errors.AsType[kjson.FieldError](err); ok {
			found = append(found, strings.TrimPrefix(path+"."+strings.TrimPrefix(item.ReplaceAllString(field.FieldPath(), ""), "."), "."))
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > maxUnknown {
		found = append(found[:maxUnknown], fmt.Sprintf("and %d more", len(found)-maxUnknown))
	}
	return found
}
