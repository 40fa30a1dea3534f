// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Selects reports whether the spec, of a stack in the given namespace, selects the
// Cluster. It fails if the selector can't be used: then nothing is known, which is not the
// same as "no".
//
// A switch of the ClusterClass upgrades the add-ons of a Cluster: another stack selects it
// then, which takes over the releases that both have in common.
func Selects(namespace string, spec *addonsv1.AddonStackSpec, cluster *clusterv1.Cluster) (bool, error) {
	if namespace != cluster.Namespace {
		return false, nil
	}
	if spec.ClusterSelector == nil && len(spec.ClassNames) == 0 {
		return false, nil
	}
	if spec.ClusterSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(spec.ClusterSelector)
		if err != nil {
			return false, fmt.Errorf("spec.clusterSelector: %w", err)
		}
		if !selector.Matches(labels.Set(cluster.Labels)) {
			return false, nil
		}
	}
	if len(spec.ClassNames) > 0 {
		class := cluster.Spec.Topology.ClassRef.Name
		return class != "" && slices.Contains(spec.ClassNames, class), nil
	}
	return true, nil
}
