// SPDX-License-Identifier: Apache-2.0

package management

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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

// Changes returns the JSON patch that changes what differs between before and
// after, and nothing else:
//   - Fields that this version of the program doesn't know stay, also within the
//     elements of lists. A merge patch replaces a list as a whole, and with it what
//     a newer version wrote there.
//   - An object whose watch label isn't what it was in before is refused: it went
//     to another instance in the meantime, see IsLost.
func Changes(before, after client.Object) (client.Patch, error) { return changes(before, after, false) }

// ChangesLocked is Changes, refused also if anything of the object was written in
// the meantime.
func ChangesLocked(before, after client.Object) (client.Patch, error) {
	return changes(before, after, true)
}

func changes(before, after client.Object, lock bool) (client.Patch, error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("%T %s: %w", before, before.GetName(), err)
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("%T %s: %w", after, after.GetName(), err)
	}
	p := &jsonPatch{}
	if filter, ok := before.GetLabels()[clusterv1.WatchLabel]; ok {
		p.add("test", pathOf("metadata", "labels", clusterv1.WatchLabel), filter)
	}
	if lock {
		p.add("replace", pathOf("metadata", "resourceVersion"), before.GetResourceVersion())
	}
	p.object("", was, is)
	if len(p.operations) > maxOperations {
		if lock {
			return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), nil
		}
		return client.MergeFrom(before), nil
	}
	data, err := json.Marshal(p.operations)
	if err != nil {
		return nil, fmt.Errorf("patch of %T %s: %w", after, after.GetName(), err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

// IsLost reports whether a patch was refused, since the object isn't as it was when the
// patch was made: the next look at it decides anew.
func IsLost(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return false
	}
	// One that fails validation names the kind, and the fields.
	details := status.Status().Details
	return details == nil || details.Kind == "" && len(details.Causes) == 0
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
			p.add("remove", path+pathOf(key), nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		p.value(path+pathOf(key), key, before[key], after[key])
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

// list patches a list element by element. It returns false if that can't be done: the
// elements have no identity, or are in another order.
func (p *jsonPatch) list(path string, keys []string, before, after []any) bool {
	was, ok := elementsOf(keys, before)
	if !ok {
		return false
	}
	is, ok := elementsOf(keys, after)
	if !ok || !slices.Equal(was.alsoIn(is), is.alsoIn(was)) {
		return false
	}
	// Positions are those that the list had: each one that is used is checked first.
	for i, id := range was.ids {
		if now, ok := is.byID[id]; ok && equality.Semantic.DeepEqual(was.byID[id], now) {
			continue
		}
		for _, key := range keys {
			p.add("test", path+pathOf(strconv.Itoa(i), key), was.byID[id][key])
		}
	}
	for i, id := range slices.Backward(was.ids) {
		if _, ok := is.byID[id]; !ok {
			p.add("remove", path+pathOf(strconv.Itoa(i)), nil)
		}
	}
	for i, id := range is.ids {
		position := path + pathOf(strconv.Itoa(i))
		if former, ok := was.byID[id]; ok {
			p.object(position, former, is.byID[id])
		} else {
			p.add("add", position, is.byID[id])
		}
	}
	return true
}

// elements of a list, each with an identity.
type elements struct {
	ids  []string
	byID map[string]map[string]any
}

// elementsOf returns false if an element has no identity, or that of another one.
func elementsOf(keys []string, list []any) (elements, bool) {
	e := elements{byID: map[string]map[string]any{}}
	for _, element := range list {
		object, ok := element.(map[string]any)
		if !ok || len(keys) == 0 {
			return e, false
		}
		id := ""
		for _, key := range keys {
			value, ok := object[key].(string)
			if !ok {
				return e, false
			}
			id += "/" + value
		}
		if _, taken := e.byID[id]; taken {
			return e, false
		}
		e.ids = append(e.ids, id)
		e.byID[id] = object
	}
	return e, true
}

// alsoIn returns the identities that the other list has as well.
func (e elements) alsoIn(other elements) []string {
	return slices.DeleteFunc(slices.Clone(e.ids), func(id string) bool { return other.byID[id] == nil })
}

// pointerEscapes are those of RFC 6901.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pathOf returns a JSON pointer.
func pathOf(parts ...string) string {
	var path strings.Builder
	for _, part := range parts {
		path.WriteString("/" + pointerEscapes.Replace(part))
	}
	return path.String()
}
