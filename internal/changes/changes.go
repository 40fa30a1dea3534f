// SPDX-License-Identifier: Apache-2.0

// Package changes makes JSON patches of what differs between two versions of an object, and
// of nothing else. Fields that this version of the program doesn't know stay, also within the
// elements of lists. A merge patch would replace a list as a whole.
package changes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// listKeys are the lists whose elements have an identity: by the name of the
// list, the fields that identify an element (+listMapKey).
var listKeys = map[string][]string{
	"conditions": {"type"},
	"stacks":     {"name"},
	"addons":     {"namespace", "name", "stack"}, // of a stack, or of a cluster
	"instances":  {"watchFilter"},
	"following":  {"addon"},
	"sources":    {"addon"},
	"gates":      {"point"}, // of an upgrade of Kubernetes
	"waves":      {"name"},  // of a rollout
}

// Operation is one of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
	// Was is what is replaced or removed; nil if it is new, or an element of a list.
	Was any `json:"-"`
}

// Patch is a JSON patch (RFC 6902).
type Patch []Operation

// Between returns the patch that makes after of before, both pointers to structs of an API.
func Between(before, after any) (Patch, error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", before, err)
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", after, err)
	}
	p := Patch{}
	p.object("", was, is)
	return p, nil
}

// Apply returns a JSON document with the changes.
func (p Patch) Apply(document []byte) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	return operations.Apply(document)
}

func (p *Patch) add(op, path string, value, was any) {
	*p = append(*p, Operation{op, path, value, was})
}

// object patches the fields of an object.
func (p *Patch) object(path string, before, after map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[key]; !has {
			p.add("remove", path+pointer(key), nil, before[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		p.value(path+pointer(key), key, before[key], after[key])
	}
}

// value patches a field, which may be new.
func (p *Patch) value(path, key string, before, after any) {
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
	p.add("add", path, after, before) // which replaces what is there
}

// list patches a list element by element. It returns false if the elements have no
// identity, or are in another order.
func (p *Patch) list(path string, keys []string, before, after []any) bool {
	was, is := identities(keys, before), identities(keys, after)
	had, has := sets.New(was...), sets.New(is...)
	kept := slices.DeleteFunc(slices.Clone(was), func(id string) bool { return !has.Has(id) })
	if len(keys) == 0 || had.Len() < len(before) || has.Len() < len(after) ||
		!slices.Equal(kept, slices.DeleteFunc(slices.Clone(is), func(id string) bool { return !had.Has(id) })) {
		return false
	}
	for i, id := range slices.Backward(was) {
		if !has.Has(id) {
			p.add("remove", fmt.Sprintf("%s/%d", path, i), nil, nil)
			before = slices.Delete(slices.Clone(before), i, i+1)
		}
	}
	for i, id := range is {
		if position := fmt.Sprintf("%s/%d", path, i); had.Has(id) {
			p.object(position, before[0].(map[string]any), after[i].(map[string]any))
			before = before[1:]
		} else {
			p.add("add", position, after[i], nil)
		}
	}
	return true
}

// identities returns the values of the keys of a list's elements, which tell these apart. It returns nil if an element is no
// object.
func identities(keys []string, list []any) []string {
	ids := make([]string, 0, len(list))
	for _, element := range list {
		object, isObject := element.(map[string]any)
		if !isObject { // as in heldRemoval.addons
			return nil
		}
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
