// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

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

// EntriesOf returns the inventory of CRDs of crds/ and of objects.
func EntriesOf(crds, objects []*unstructured.Unstructured) []record.Entry {
	entries := make([]record.Entry, 0, len(crds)+len(objects))
	for i, o := range slices.Concat(crds, objects) {
		e := record.EntryOf(o)
		e.CRD = i < len(crds)
		entries = append(entries, e)
	}
	return entries
}
