// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// makes reports whether the template of a release makes its values, as Chandler would have it do.
func (f *Found) makes(ctx context.Context, r *Release) bool {
	at := slices.IndexFunc(f.Clusters, func(c unstructured.Unstructured) bool { return c.GetName() == r.Cluster })
	cluster := &clusterv1.Cluster{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(f.Clusters[at].Object, cluster) != nil {
		return false
	}
	reader := layers.Reader{
		Renderer: layers.InProcess{}, Namespace: f.Namespace, Cluster: member.OfCluster(cluster), Object: layers.ObjectsBy(f.Client, f.Namespace),
	}
	made, _, err := reader.Read(ctx, layers.Layer{Field: "valuesTemplate", Template: &addonsv1.Addon{
		ValuesTemplate: r.Template, ValuesTemplateMode: addonsv1.ValuesTemplateModeLenient,
	}})
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
