// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Apart returns managedFields in which another manager has none of the fields that the manager applies. It returns
// nil if it has none of them.
func Apart(managed []metav1.ManagedFieldsEntry, manager, other string) []metav1.ManagedFieldsEntry {
	i := slices.IndexFunc(managed, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == other && e.Subresource == "" })
	if i < 0 {
		return nil // as nearly always
	}
	ours, theirs := setOf(managed, manager), parse(managed[i].FieldsV1)
	if theirs.Intersection(ours).Empty() {
		return nil
	}
	all := slices.Clone(managed)
	left, err := theirs.Difference(ours).ToJSON()
	if err != nil || string(left) == "{}" {
		return slices.Delete(all, i, i+1)
	}
	all[i].FieldsV1 = metav1.NewFieldsV1(string(left))
	return all
}
