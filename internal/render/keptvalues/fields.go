// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// walk calls visit with a value and all that is below it, fields in the order of their names. The path of an item has
// the name that item returns, in brackets.
func walk(path string, value any, item func(i int, value any) string, visit func(path string, value any)) {
	visit(path, value)
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walk(path+"."+key, value[key], item, visit)
		}
	case []any:
		for i, v := range value {
			walk(path+"["+item(i, v)+"]", v, item, visit)
		}
	}
}

func itemNumber(i int, _ any) string { return strconv.Itoa(i) }

// itemName returns the name that an item has in itself: it is the same item at another place in its list.
func itemName(_ int, item any) string {
	if named, ok := item.(map[string]any); ok && named["name"] != nil {
		return fmt.Sprint(named["name"])
	}
	return ""
}

// scalarText returns a value as text; false for maps, lists and null.
func scalarText(value any) (string, bool) {
	switch value.(type) {
	case map[string]any, []any, nil:
		return "", false
	}
	return fmt.Sprint(value), true
}

func isSecret(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && o.GetAPIVersion() == "v1"
}

// leavesOf returns the fields of an object by their paths, with the data of Secrets as plain text.
func leavesOf(o *unstructured.Unstructured) map[string]string {
	leaves, secret := map[string]string{}, isSecret(o)
	walk("", o.Object, itemNumber, func(path string, value any) {
		text, ok := scalarText(value)
		if !ok {
			return
		}
		if key, is := strings.CutPrefix(path, ".stringData."); is && secret {
			leaves[".data."+key] = text // instead of data, which was visited before
		}
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil && secret && strings.HasPrefix(path, ".data.") {
			text = string(plain)
		}
		leaves[path] = text
	})
	return leaves
}

func leavesByIdentity(objects []*unstructured.Unstructured, namespace string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, o := range objects {
		all[manifest.Identity(o, namespace)] = leavesOf(o)
	}
	return all
}
