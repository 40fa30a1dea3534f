// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Snapshot returns the revision that keeps the stack's spec, with the given
// number. Equal specs have equal names, so that going back to an earlier spec
// finds the earlier revision.
func Snapshot(stack *addonsv1.AddonStack, number int64) (*appsv1.ControllerRevision, error) {
	data, err := json.Marshal(stack.Spec)
	if err != nil {
		return nil, fmt.Errorf("spec of AddonStack %s: %w", stack.Name, err)
	}
	sum := sha256.Sum256(data)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: stack.Namespace,
			Name:      stack.Name + "-" + hex.EncodeToString(sum[:5]),
			Labels:    map[string]string{addonsv1.StackNameLabel: stack.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(stack, addonsv1.GroupVersion.WithKind("AddonStack")),
			},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
	if filter, ok := stack.Labels[clusterv1.WatchLabel]; ok {
		revision.Labels[clusterv1.WatchLabel] = filter
	}
	return revision, nil
}

// SpecOf returns the spec that a revision keeps.
func SpecOf(revision *appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	spec := &addonsv1.AddonStackSpec{}
	if err := json.Unmarshal(revision.Data.Raw, spec); err != nil {
		return nil, fmt.Errorf("data of ControllerRevision %s: %w", revision.Name, err)
	}
	return spec, nil
}

// OwnRevisions returns the stack's revisions, the newest first. Two of one number
// (which only a lagging cache can bring about) have an order as well.
func OwnRevisions(stack *addonsv1.AddonStack, all []appsv1.ControllerRevision) []appsv1.ControllerRevision {
	var own []appsv1.ControllerRevision
	for i := range all {
		if metav1.IsControlledBy(&all[i], stack) {
			own = append(own, all[i])
		}
	}
	slices.SortFunc(own, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Name, b.Name))
	})
	return own
}
