// SPDX-License-Identifier: Apache-2.0

package generated

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

func leavesByIdentity(objects []*unstructured.Unstructured, namespace string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, o := range objects {
		all[manifest.Identity(o, namespace)] = leavesOf(o)
	}
	return all
}

// leavesOf are the fields of an object by their paths, with what Secrets have as plain text.
func leavesOf(o *unstructured.Unstructured) map[string]string {
	leaves := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, v := range value {
				walk(path+"."+key, v)
			}
		case []any:
			for i, v := range value {
				walk(path+"["+strconv.Itoa(i)+"]", v)
			}
		case nil:
		default:
			leaves[path] = fmt.Sprint(value)
		}
	}
	walk("", o.Object)
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return leaves
	}
	for path, text := range maps.Clone(leaves) {
		if key, is := strings.CutPrefix(path, ".stringData."); is {
			leaves[".data."+key] = text
		} else if plain, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(path, ".data.") && leaves[".stringData."+path[len(".data."):]] == "" {
			leaves[path] = string(plain)
		}
	}
	return leaves
}
