// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Rules say which changes stay as others made them.
type Rules []addonsv1.DriftIgnoreRule

// For returns the rules that are for an object.
func (r Rules) For(o *unstructured.Unstructured) Rules {
	gvk := o.GroupVersionKind()
	return slices.DeleteFunc(slices.Clone(r), func(rule addonsv1.DriftIgnoreRule) bool {
		return rule.Group != nil && *rule.Group != gvk.Group ||
			rule.Kind != "" && rule.Kind != gvk.Kind ||
			rule.Name != "" && rule.Name != o.GetName()
	})
}

// Split returns the changes of an object that the rules leave to others, and the rest. The
// rules are those for the object. A rule with managers is for what one of them owns; a rule
// with neither paths nor managers is for all fields.
func (r Rules) Split(o *unstructured.Unstructured, changes []Change) (ignored, rest []Change) {
	for _, c := range changes {
		if slices.ContainsFunc(r, func(rule addonsv1.DriftIgnoreRule) bool { return covers(rule, o, c) }) {
			ignored = append(ignored, c)
		} else {
			rest = append(rest, c)
		}
	}
	return ignored, rest
}

func covers(rule addonsv1.DriftIgnoreRule, o *unstructured.Unstructured, c Change) bool {
	isTheirs := func(name string) bool { return slices.Contains(c.Managers, name) }
	if len(rule.Managers) > 0 && !slices.ContainsFunc(rule.Managers, isTheirs) {
		return false
	}
	return len(rule.Paths) == 0 || slices.ContainsFunc(rule.Paths, func(pointer string) bool {
		return leadsTo(o.Object, c.Path, segments(pointer))
	})
}

// segments splits a JSON pointer (RFC 6901).
func segments(pointer string) []string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

// leadsTo reports whether a pointer names the field of a path, or one that it is in. The
// number of a list's item is that in the object as the add-on has it; "*" is any item.
func leadsTo(in any, path fieldpath.Path, pointer []string) bool {
	if len(pointer) == 0 {
		return true
	}
	if len(path) == 0 {
		return false
	}
	if path[0].FieldName != nil {
		fields, _ := in.(map[string]any)
		return *path[0].FieldName == pointer[0] && leadsTo(fields[pointer[0]], path[1:], pointer[1:])
	}
	list, _ := in.([]any)
	i := indexOf(list, path[0])
	if i < 0 || pointer[0] != "*" && pointer[0] != strconv.Itoa(i) {
		return false
	}
	return leadsTo(list[i], path[1:], pointer[1:])
}

// indexOf returns which item of a list an element of a path is, -1 if none is.
func indexOf(list []any, e fieldpath.PathElement) int {
	switch {
	case e.Index != nil && *e.Index < len(list):
		return *e.Index
	case e.Key != nil:
		return slices.IndexFunc(list, func(item any) bool { return hasKey(item, *e.Key) })
	case e.Value != nil:
		return slices.IndexFunc(list, func(item any) bool { return value.Equals(value.NewValueInterface(item), *e.Value) })
	}
	return -1
}

// hasKey reports whether an item has the key fields of a path. A key field with a default, such as
// a port's protocol, may be left out of the item.
func hasKey(item any, key value.FieldList) bool {
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range key {
		if v, has := fields[k.Name]; has && !value.Equals(value.NewValueInterface(v), k.Value) {
			return false
		}
	}
	return true
}

// Without returns the object without the fields of changes. So what others own there stays as
// it is when the object is applied, and what they removed stays away.
func Without(o *unstructured.Unstructured, changes []Change) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, c := range changes {
		without(o.Object, c.Path)
	}
	return o
}

// without takes a field out of a map or list, and returns what is left of that.
func without(in any, path fieldpath.Path) any {
	switch in := in.(type) {
	case map[string]any:
		if path[0].FieldName == nil {
			break
		}
		name := *path[0].FieldName
		if inner, has := in[name]; len(path) == 1 {
			delete(in, name)
		} else if has {
			in[name] = without(inner, path[1:])
		}
	case []any:
		if i := indexOf(in, path[0]); i >= 0 && len(path) == 1 {
			return slices.Delete(in, i, i+1)
		} else if i >= 0 {
			in[i] = without(in[i], path[1:])
		}
	}
	return in
}
