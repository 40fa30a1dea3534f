// SPDX-License-Identifier: Apache-2.0

package management

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listKeys are the lists whose elements have an identity: by the name of the
// list, the fields that identify an element (+listMapKey).
var listKeys = map[string][]string{
	"conditions": {"type"},
	"stacks":     {"name"},
	"addons":     {"namespace", "name", "stack"},
	"instances":  {"watchFilter"},
	"following":  {"addon"},
	"sources":    {"addon"},
}

// maxOperations keeps below the 10,000 that the API server takes. A patch of more,
// as when most of a thousand add-ons change at once, replaces lists as a whole.
const maxOperations = 9000

// Changes returns the JSON patch that changes what differs between before and after, and
// nothing else. Fields that this version of the program doesn't know stay, also within the
// elements of lists. A merge patch would replace a list as a whole. The API server answers
// with a conflict if the object was written since before was read.
func Changes(before, after client.Object) (client.Patch, error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("%T %s: %w", before, before.GetName(), err)
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("%T %s: %w", after, after.GetName(), err)
	}
	p := &jsonPatch{}
	p.add("replace", "/metadata/resourceVersion", before.GetResourceVersion())
	p.object("", was, is)
	if len(p.operations) > maxOperations {
		return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), nil
	}
	data, err := json.Marshal(p.operations)
	if err != nil {
		return nil, fmt.Errorf("patch of %T %s: %w", after, after.GetName(), err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

type jsonPatch struct{ operations []operation }

func (p *jsonPatch) add(op, path string, value any) {
	p.operations = append(p.operations, operation{op, path, value})
}

// object patches the fields of an object.
func (p *jsonPatch) object(path string, before, after map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[key]; !has {
			p.add("remove", path+pointer(key), nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		p.value(path+pointer(key), key, before[key], after[key])
	}
}

// value patches a field, which may be new.
func (p *jsonPatch) value(path, key string, before, after any) {
	if equality.Semantic.DeepEqual(before, after) {
		return
	}
	switch was := before.(type) {
	case map[string]any:
		if is, ok := after.(map[string]any); ok {
			p.object(path, was, is)
			return
		}
	case []any:
		if is, ok := after.([]any); ok && p.list(path, listKeys[key], was, is) {
			return
		}
	}
	p.add("add", path, after) // which replaces what is there
}

// list patches a list element by element. It returns false if the elements have no
// identity, or are in another order.
func (p *jsonPatch) list(path string, keys []string, before, after []any) bool {
	was, is := identities(keys, before), identities(keys, after)
	had, has := sets.New(was...), sets.New(is...)
	kept := slices.DeleteFunc(slices.Clone(was), func(id string) bool { return !has.Has(id) })
	if len(keys) == 0 || had.Len() < len(was) || has.Len() < len(is) ||
		!slices.Equal(kept, slices.DeleteFunc(slices.Clone(is), func(id string) bool { return !had.Has(id) })) {
		return false
	}
	for i, id := range slices.Backward(was) {
		if !has.Has(id) {
			p.add("remove", fmt.Sprintf("%s/%d", path, i), nil)
			before = slices.Delete(slices.Clone(before), i, i+1)
		}
	}
	for i, id := range is {
		if position := fmt.Sprintf("%s/%d", path, i); had.Has(id) {
			p.object(position, before[0].(map[string]any), after[i].(map[string]any))
			before = before[1:]
		} else {
			p.add("add", position, after[i])
		}
	}
	return true
}

// identities returns what tells the elements of a list apart: the values of their keys.
func identities(keys []string, list []any) []string {
	ids := make([]string, 0, len(list))
	for _, element := range list {
		object, _ := element.(map[string]any)
		var id strings.Builder
		for _, key := range keys {
			fmt.Fprintf(&id, "/%v", object[key])
		}
		ids = append(ids, id.String())
	}
	return ids
}

// pointer returns a key as a part of a JSON pointer (RFC 6901).
func pointer(key string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
