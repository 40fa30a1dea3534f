// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
)

// templateLimits are those of the values that a template makes.
var templateLimits = job.Limits{OutputBytes: 4 << 20, GeneratedBytes: 1 << 20}

// makes reports whether the template of a release makes its values, as Chandler would have it do.
func (g *gathering) makes(ctx context.Context, r *Release) bool {
	data := map[string]any{}
	for i := range g.Found.Clusters {
		if g.Found.Clusters[i].GetName() == r.Cluster {
			data["Cluster"] = g.Found.Clusters[i].Object
		}
	}
	for root, field := range map[string]string{"ControlPlane": "controlPlaneRef", "InfraCluster": "infrastructureRef"} {
		ref, _, _ := unstructured.NestedStringMap(data, "Cluster", "spec", field)
		if len(ref) == 0 || !strings.Contains(r.Template, root) {
			continue
		}
		kind, err := g.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref["apiGroup"], Kind: ref["kind"]})
		if err != nil {
			return false
		}
		o := newObject(kind.GroupVersionKind, g.World.Namespace, ref["name"])
		if g.Client.Get(ctx, client.ObjectKeyFromObject(o), o) != nil {
			return false
		}
		data[root] = o.Object
	}
	text, err := values.RenderTemplate(&job.Template{Name: "valuesTemplate", Text: r.Template, Data: data}, templateLimits)
	if err != nil {
		return false
	}
	made, err := values.Read(&job.Values{Text: []byte(*text), Lenient: true})
	return err == nil && same(made, r.Values)
}

// same reports whether values are equal in JSON. None are the same as an empty map.
func same(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(plainJSON(a), plainJSON(b))
}

// plainJSON returns values with the types that JSON is read into.
func plainJSON(values map[string]any) (plain map[string]any) {
	text, _ := json.Marshal(values) // it was read from JSON
	_ = json.Unmarshal(text, &plain)
	return plain
}

// Split returns what all values have in common, and what each of them has beside that. Both merged are the values again,
// whichever is above: they have no field in common. Maps are split further if all have one with something in it, as an
// empty map, too, is a value.
func Split(all []map[string]any) (common map[string]any, own []map[string]any) {
	common, own = map[string]any{}, make([]map[string]any, len(all))
	keys := map[string]any{}
	for i := range all {
		own[i] = map[string]any{}
		maps.Copy(keys, all[i])
	}
	for key := range keys {
		var inner []map[string]any
		isEqual := true
		for i := range all {
			value, has := all[i][key]
			isEqual = isEqual && has && reflect.DeepEqual(value, all[0][key])
			if m, ok := value.(map[string]any); ok && len(m) > 0 {
				inner = append(inner, m)
			}
			if has {
				own[i][key] = value
			}
		}
		if !isEqual && len(inner) < len(all) {
			continue
		}
		shared, rest := all[0][key], make([]map[string]any, len(all))
		if !isEqual {
			shared, rest = Split(inner)
		}
		if m, ok := shared.(map[string]any); isEqual || !ok || len(m) > 0 {
			common[key] = shared
		}
		for i := range all {
			if delete(own[i], key); len(rest[i]) > 0 {
				own[i][key] = rest[i]
			}
		}
	}
	return common, own
}
