// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// helmManager is Helm's field manager. Helm 3 updates with it, Helm 4 applies.
const helmManager = "helm"

// differs tells whether applying an object would change a field of it beside our
// labels. The server is asked, so that defaults and other spellings don't count.
func (r *run) differs(ctx context.Context, o *unstructured.Unstructured) error {
	key := record.KeyOf(o)
	wayOut := "Delete it, change the add-on's values, or set its adoptionPolicy to Adopt"
	if holdsData(key) {
		wayOut = "Change the add-on's values, or set its adoptionPolicy to Adopt"
	}
	live, err := r.get(ctx, o)
	if err != nil {
		return err
	}
	would, err := r.patch(ctx, o, false, client.DryRunAll)
	what := conflictsOf(err)
	switch {
	case err == nil:
		what = firstOf(differences(withoutNoise(live), withoutNoise(would)))
	case what == "":
		return err
	}
	if what == "" {
		return nil
	}
	return reject(key, ReasonObjectExists, fmt.Sprintf("it exists already, and the add-on would change %s. %s", what, wayOut))
}

// withoutNoise returns an object without what an equal apply changes.
func withoutNoise(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	labels := c.GetLabels()
	delete(labels, addonsv1.AddonLabel)
	delete(labels, addonsv1.AddonNamespaceLabel)
	if len(labels) == 0 {
		labels = nil
	}
	c.SetLabels(labels)
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(c.Object, "status")
	return c.Object
}

// differences returns the paths at which two values differ, sorted. Values aren't
// told: they may be secret.
func differences(a, b map[string]any) []string {
	var paths []string
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		am, aIsMap := a.(map[string]any)
		bm, bIsMap := b.(map[string]any)
		if !aIsMap || !bIsMap {
			if !reflect.DeepEqual(a, b) {
				paths = append(paths, path)
			}
			return
		}
		keys := sets.KeySet(am).Union(sets.KeySet(bm))
		for _, k := range sets.List(keys) {
			walk(path+"."+k, am[k], bm[k])
		}
	}
	walk("", a, b)
	return paths
}

// takeFields moves the fields that Helm, or the Cluster Stack Operator, set on an object
// to our manager before we apply it. Otherwise a field that the chart drops later would
// stay for ever, as they would still be said to want it. The same goes for those of
// other managers, whose objects are taken over.
func (r *run) takeFields(ctx context.Context, live *metav1.PartialObjectMetadata, managers ...string) error {
	former := append(predecessors(&live.ObjectMeta), managers...)
	if len(former) == 0 {
		return nil
	}
	upgraded := live.DeepCopy()
	for i := range upgraded.ManagedFields {
		if e := &upgraded.ManagedFields[i]; slices.Contains(former, e.Manager) && e.Subresource == "" {
			e.Operation = metav1.ManagedFieldsOperationUpdate // what csaupgrade looks for
		}
	}
	if err := csaupgrade.UpgradeManagedFields(upgraded, sets.New(former...), r.manager); err != nil {
		return err
	}
	if slices.Contains(former, operatorManager) {
		kept, err := operatorLabels(live.ManagedFields)
		if err != nil {
			return err
		}
		upgraded.ManagedFields = append(upgraded.ManagedFields, kept...)
	}
	return r.patchManagers(ctx, live, upgraded.ManagedFields, r.manager)
}

// handOver makes an object no add-on's: our labels go, and our fields are
// Helm's from now on, so that `helm upgrade` can change them. One that is kept, while its
// release goes, has a note by which that release may have it again.
func (r *run) handOver(ctx context.Context, live *metav1.PartialObjectMetadata, kept bool) error {
	managers := slices.Clone(live.ManagedFields)
	taken := managedBy(&live.ObjectMeta, helmManager)
	managers = slices.DeleteFunc(managers, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == r.manager && taken
	})
	for i := range managers {
		if managers[i].Manager == r.manager {
			managers[i].Manager = helmManager
		}
	}
	var changes []operation
	for _, l := range []string{addonsv1.AddonLabel, addonsv1.AddonNamespaceLabel} {
		if _, ok := live.Labels[l]; ok {
			changes = append(changes, operation{Op: "remove", Path: pathOf("labels", l)})
		}
	}
	switch by, noted := live.Annotations[KeptByAnnotation]; {
	case kept && len(live.Annotations) == 0:
		changes = append(changes, operation{"add", "/metadata/annotations", map[string]string{KeptByAnnotation: r.release.String()}})
	case kept && by != r.release.String():
		changes = append(changes, operation{"add", pathOf("annotations", KeptByAnnotation), r.release.String()})
	case !kept && noted:
		changes = append(changes, operation{Op: "remove", Path: pathOf("annotations", KeptByAnnotation)})
	}
	if len(changes) == 0 {
		return nil
	}
	return r.patchManagers(ctx, live, managers, helmManager, changes...)
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// pathOf is that of a label or an annotation in a JSON patch.
func pathOf(field, key string) string {
	return "/metadata/" + field + "/" + strings.ReplaceAll(key, "/", "~1")
}

// patchManagers sets managedFields and makes changes as a manager, if the object is still as
// it was read.
func (r *run) patchManagers(ctx context.Context, live *metav1.PartialObjectMetadata, managers []metav1.ManagedFieldsEntry, as string, changes ...operation) error {
	patch := append([]operation{
		{"replace", "/metadata/resourceVersion", live.ResourceVersion},
		{"replace", "/metadata/managedFields", managers},
	}, changes...)
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	r.wrote.Store(true)
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	target.SetGroupVersionKind(live.GroupVersionKind())
	return r.t.Client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(as))
}
