// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

const (
	// OperatorManager is the field manager that the Cluster Stack Operator applies with.
	OperatorManager = "kubectl"
	// operatorLabel is on all objects that it applied, and in their pods' templates.
	operatorLabel = "clusterstack.x-k8s.io/instance"
	// clientSideManager is the field manager of `kubectl apply` without --server-side, and
	// lastApplied the annotation that it leaves.
	clientSideManager = "kubectl-client-side-apply"
	lastApplied       = "kubectl.kubernetes.io/last-applied-configuration"
)

// BeforeFirstApply is the field manager of what had none when it was applied (k8s.io/apimachinery,
// util/managedfields/internal/fieldmanager.go): somebody has stripped the object's managedFields.
const BeforeFirstApply = "before-first-apply"

// Predecessors returns the field managers that set an object's fields before it was taken
// over, as the chart wanted them then. The name of Helm's manager is that of the program that
// Helm's library is in: helm-controller for Flux, manager for the Helm add-on provider. So it
// is known by the annotation that it sets.
func Predecessors(live *metav1.ObjectMeta) []string {
	_, labelled := live.Labels[operatorLabel]
	_, applied := live.Annotations[lastApplied]
	var managers []string
	for _, e := range live.ManagedFields {
		was := e.Manager == HelmManager || labelled && e.Manager == OperatorManager || applied && e.Manager == clientSideManager ||
			e.Subresource == "" && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+HelmReleaseName+`"`)
		if was && !strings.HasPrefix(e.Manager, managerPrefix) && !slices.Contains(managers, e.Manager) {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}

// OperatorLabels returns the fields that stay the Cluster Stack Operator's: its
// label. Without it in their template, all pods would be restarted.
func OperatorLabels(managers []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var kept []metav1.ManagedFieldsEntry
	for _, e := range managers {
		if e.Manager != OperatorManager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		fields, labels := fieldpath.NewSet(), fieldpath.NewSet()
		if err := fields.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("fields of manager %s: %w", e.Manager, err)
		}
		for path := range fields.Leaves().All() {
			if name := path[len(path)-1].FieldName; name != nil && *name == operatorLabel {
				labels.Insert(path.Copy())
			}
		}
		if labels.Empty() {
			continue
		}
		raw, err := labels.ToJSON()
		if err != nil {
			return nil, err
		}
		e.FieldsV1 = metav1.NewFieldsV1(string(raw))
		kept = append(kept, e)
	}
	return kept, nil
}

// FieldManager returns the field manager of an add-on's objects. At most 128 characters are allowed: an
// add-on's name has up to 53, a namespace up to 63.
func FieldManager(r record.Release) string { return managerPrefix + r.Namespace + "/" + r.Name }

const managerPrefix = "chandler/"

// SelectorOf selects an add-on's objects.
func SelectorOf(r record.Release) string {
	return fmt.Sprintf("%s=%s,%s=%s", addonsv1.AddonLabel, r.Name, addonsv1.AddonNamespaceLabel, r.Namespace)
}

// HelmManager is Helm's field manager. Helm 3 updates with it, Helm 4 applies.
const HelmManager = "helm"
