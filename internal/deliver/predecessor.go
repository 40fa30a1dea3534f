// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// operatorManager is the field manager that the Cluster Stack Operator applies with.
	operatorManager = "kubectl"
	// operatorLabel is on all objects that it applied, and in their pods' templates.
	operatorLabel = "clusterstack.x-k8s.io/instance"
)

// predecessors are the field managers that set an object's fields before it was taken
// over, as the chart wanted them then.
func predecessors(live *metav1.ObjectMeta) []string {
	var managers []string
	if managedBy(live, helmManager) {
		managers = append(managers, helmManager)
	}
	if _, labelled := live.Labels[operatorLabel]; labelled && managedBy(live, operatorManager) {
		managers = append(managers, operatorManager)
	}
	return managers
}

// operatorLabels is what stays the Cluster Stack Operator's: its label. Without it in
// their template, pods would all be restarted.
func operatorLabels(managers []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var kept []metav1.ManagedFieldsEntry
	for _, e := range managers {
		if e.Manager != operatorManager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		fields := map[string]any{}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("fields of manager %s: %w", e.Manager, err)
		}
		if fields = leadingTo(fields, "f:"+operatorLabel); fields == nil {
			continue
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		e.FieldsV1 = &metav1.FieldsV1{Raw: raw}
		kept = append(kept, e)
	}
	return kept, nil
}

// leadingTo returns what of a tree of fields leads to a key, nil if nothing does.
func leadingTo(fields map[string]any, key string) map[string]any {
	kept := map[string]any{}
	for name, value := range fields {
		below, isTree := value.(map[string]any)
		if name == key {
			kept[name] = value
		} else if below = leadingTo(below, key); isTree && below != nil {
			kept[name] = below
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
