// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// Selects reports whether the spec of a stack in a namespace selects the cluster. It fails if the
// selector can't be used: then nothing is known.
//
// A switch of the ClusterClass upgrades add-ons: another stack selects the Cluster then, and takes
// over the releases that both have.
func Selects(namespace string, spec *addonsv1.AddonStackSpec, cluster *member.Member) (bool, error) {
	kinds := spec.ClusterKinds
	if len(kinds) == 0 {
		kinds = []string{addonsv1.KindCluster}
	}
	if namespace != cluster.Namespace || !slices.Contains(kinds, cluster.Kind) {
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
		return cluster.ClassName != "" && slices.Contains(spec.ClassNames, cluster.ClassName), nil
	}
	return true, nil
}
