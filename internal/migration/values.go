// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"reflect"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// makes reports whether the template of a release makes its values, as Chandler would have it do.
func (f *Found) makes(ctx context.Context, r *Release) bool {
	at := slices.IndexFunc(f.Clusters, func(c clusterv1.Cluster) bool { return c.Name == r.Cluster })
	reader := layers.Reader{
		Renderer: layers.InProcess{}, Namespace: f.Namespace, Cluster: member.OfCluster(&f.Clusters[at]), Object: layers.ObjectsBy(f.Client, f.Namespace),
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
