// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
)

// Apply applies edits to documents and to CRDs. An object without an edit stays as it
// is, to the byte. If there are some, lists become one document for each of their items.
func Apply(reader *manifest.Reader, edits job.Edits, documents []manifest.Document, crds []*unstructured.Unstructured, enter func(job.Stage)) ([]manifest.Document, []*unstructured.Unstructured, error) {
	if edits.AreNone() {
		return documents, crds, nil
	}
	enter(job.StagePatches)
	documents, err := reader.SplitLists(documents)
	if err != nil {
		return nil, nil, err
	}
	before := map[*unstructured.Unstructured]map[string]any{}
	var objects []*unstructured.Unstructured
	for _, doc := range documents {
		if doc.Object != nil && manifest.CheckObject(doc.Object) == nil {
			objects = append(objects, doc.Object)
			before[doc.Object] = doc.Object.Object
		}
	}
	objects = append(objects, crds...)
	for i := range edits.Patches {
		parsed, invalid := parse(&edits.Patches[i], field.NewPath("patches").Index(i))
		if invalid != nil {
			return nil, nil, failure.New(job.ReasonPatchFailed, "%w", invalid)
		}
		for _, p := range parsed {
			if err := p.apply(objects, reader.Namespace); err != nil {
				return nil, nil, err
			}
		}
	}
	deleted := func(object *unstructured.Unstructured) bool { return object != nil && object.Object == nil }
	documents = slices.DeleteFunc(documents, func(doc manifest.Document) bool { return deleted(doc.Object) })
	for i, doc := range documents {
		if was, ok := before[doc.Object]; !ok || reflect.DeepEqual(was, doc.Object.Object) {
			continue
		}
		text, err := strictyaml.Marshal(doc.Object.Object)
		if err != nil {
			return nil, nil, failure.New(job.ReasonPatchFailed, "%s: %w", reader.Called(doc.Path), err)
		}
		if documents[i], err = reader.Replace(doc, text); err != nil {
			return nil, nil, err
		}
	}
	return documents, slices.DeleteFunc(slices.Clone(crds), deleted), nil
}

// apply changes the objects that the patch fits, and empties those that it deletes. A patch that fits
// none is an error: kustomize says nothing then, and the change is missed in the cluster.
func (p *patch) apply(objects []*unstructured.Unstructured, namespace string) (err error) {
	defer func() {
		if recover() != nil { // its value may hold secrets
			err = failure.New(job.ReasonPatchFailed, "kustomize failed on %s; rewrite the patch", p.field)
		}
	}()
	found := 0
	for _, object := range objects {
		if object.Object == nil || !p.fits(object, namespace) {
			continue
		}
		if found++; found > 1 && p.named {
			return failure.New(job.ReasonPatchFailed, "%s fits several objects (%s); set metadata.namespace in it, or target beside it", p.field, p)
		}
		after, err := p.change(object.Object)
		if err != nil {
			return failure.New(job.ReasonPatchFailed, "%s can't be applied to %s %s: %w", p.field, object.GetKind(), object.GetName(), err)
		}
		if object.Object = after; after == nil {
			continue
		}
		if err := manifest.CheckObject(object); err != nil {
			return failure.New(job.ReasonPatchFailed, "%s leaves an object that can't be applied: %w", p.field, err)
		}
	}
	if found == 0 {
		return failure.New(job.ReasonPatchFailed, "%s fits none of the add-on's objects (%s); correct it, or take it out", p.field, p)
	}
	return nil
}

// fits tells whether a patch is for an object. Unlike in kustomize, group, version and kind are no
// expressions, and an object without a namespace is in the add-on's.
func (p *patch) fits(object *unstructured.Unstructured, namespace string) bool {
	gvk := object.GroupVersionKind()
	namespace = cmp.Or(object.GetNamespace(), namespace)
	if resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind).IsClusterScoped() {
		namespace = ""
	}
	return (p.target.Group == gvk.Group || p.target.Group == "" && !p.named) &&
		(p.target.Version == gvk.Version || p.target.Version == "") &&
		(p.target.Kind == gvk.Kind || p.target.Kind == "") &&
		p.namespaces.MatchNamespace(namespace) && p.names.MatchName(object.GetName()) &&
		p.labels.Matches(labels.Set(object.GetLabels()))
}

// change returns the patched object, nil if the patch deletes it. Merged, it keeps its name,
// namespace and kind. Kustomize's filter for operations would round large numbers.
func (p *patch) change(object map[string]any) (after map[string]any, err error) {
	var data []byte
	if p.operations != nil {
		if data, err = json.Marshal(object); err == nil {
			data, err = p.operations.Apply(data)
		}
	} else {
		var target *kyaml.RNode
		if target, err = kyaml.FromMap(object); err != nil {
			return nil, err
		}
		merged, patch := resource.Resource{RNode: *target}, resource.Resource{RNode: *p.document.Copy()}
		patch.SetGvk(merged.GetGvk()) // by which kustomize finds how lists are merged
		if err = merged.ApplySmPatch(&patch); err == nil && merged.IsNilOrEmpty() {
			return nil, nil
		} else if err == nil {
			data, err = merged.MarshalJSON()
		}
	}
	if err != nil {
		return nil, err
	}
	return after, utiljson.Unmarshal(data, &after)
}
