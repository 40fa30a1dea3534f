// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
)

// templateLimits are those of the values that a template makes.
var templateLimits = job.Limits{OutputBytes: 4 << 20, GeneratedBytes: 1 << 20}

// makes reports whether the template of a release makes its values, as Chandler would have it do.
func (f *Found) makes(ctx context.Context, r *Release) bool {
	at := slices.IndexFunc(f.Clusters, func(c unstructured.Unstructured) bool { return c.GetName() == r.Cluster })
	data := map[string]any{"Cluster": f.Clusters[at].Object}
	for root, field := range map[string]string{"ControlPlane": "controlPlaneRef", "InfraCluster": "infrastructureRef"} {
		ref, _, _ := unstructured.NestedStringMap(data, "Cluster", "spec", field)
		if len(ref) == 0 || !strings.Contains(r.Template, root) {
			continue
		}
		kind, err := f.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref["apiGroup"], Kind: ref["kind"]})
		if err != nil {
			return false
		}
		o := newObject(kind.GroupVersionKind, f.Namespace, ref["name"])
		if f.Client.Get(ctx, client.ObjectKeyFromObject(o), o) != nil {
			return false
		}
		data[root] = o.Object
	}
	text, err := values.RenderTemplate(&job.Template{Name: "valuesTemplate", Text: r.Template, Data: data}, templateLimits)
	if err != nil {
		return false
	}
	made, err := values.ReadOutside(&job.Values{Text: []byte(*text), Lenient: true})
	return err == nil && record.SameValues(made, r.Values)
}

// shared returns what values have in common. A map is split further if all have one with something equal in it.
func shared(a, b map[string]any) map[string]any {
	both := map[string]any{}
	for key, value := range a {
		other, has := b[key]
		inner, _ := value.(map[string]any)
		outer, _ := other.(map[string]any)
		if has && reflect.DeepEqual(value, other) {
			both[key] = value
		} else if part := shared(inner, outer); len(part) > 0 {
			both[key] = part
		}
	}
	return both
}

// without returns what values have beside what they share with others. Both merged are the values again, whichever is
// above: they have no field in common.
func without(values, common map[string]any) map[string]any {
	rest := map[string]any{}
	for key, value := range values {
		other, has := common[key]
		if inner, isMap := value.(map[string]any); !has {
			rest[key] = value
		} else if part, _ := other.(map[string]any); isMap && !reflect.DeepEqual(value, other) {
			rest[key] = without(inner, part)
		}
	}
	return rest
}
