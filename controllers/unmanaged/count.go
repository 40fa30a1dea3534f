// SPDX-License-Identifier: Apache-2.0

// Package unmanaged counts Clusters that are in no instance's scope. It runs beside the webhooks, in the deployment that all
// instances share: no instance sees them.
package unmanaged

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// place is where Clusters are, as scopes tell it.
type place struct{ namespace, filter string }

// Count returns, for each instance that holds its scope, how many Clusters of its namespaces are in no such scope. Namespaces that
// no instance has aren't counted.
func Count(clusters []metav1.PartialObjectMetadata, instances []addonsv1.ProviderInstance) []int32 {
	at := map[place]int32{}
	for i := range clusters {
		at[place{clusters[i].Namespace, clusters[i].Labels[clusterv1.WatchLabel]}]++
	}
	counts := make([]int32, len(instances))
	for where, n := range at {
		var near []int // the instances that have the namespace
		managed := false
		for i := range instances {
			scope := instance.ScopeOf(&instances[i].Spec)
			if !instances[i].HoldsScope() || !scope.HasNamespace(where.namespace) {
				continue
			}
			near = append(near, i)
			managed = managed || scope.WatchFilter == "" || scope.WatchFilter == where.filter
		}
		if managed {
			continue
		}
		for _, i := range near {
			counts[i] += n
		}
	}
	return counts
}
