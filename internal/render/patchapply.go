// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// apply applies the patches one after the other.
func (m *manifestReader) apply(patches []addonsv1.Patch, subjects []*subject) error {
	for i := range patches {
		p, invalid := parsePatch(&patches[i], field.NewPath("patches").Index(i))
		if invalid != nil {
			return failf(ReasonPatchFailed, "%w", invalid)
		}
		if p.strategic == nil {
			if err := p.each(m.selected(p, subjects), p.applyOperations); err != nil {
				return err
			}
		}
		for _, strategic := range p.strategic {
			found, err := m.targets(p, strategic, subjects)
			if err != nil {
				return err
			}
			if err := p.each(found, strategic.apply); err != nil {
				return err
			}
		}
	}
	return nil
}

// selected are the objects that the patch's selector matches.
func (m *manifestReader) selected(p *patch, subjects []*subject) []*subject {
	var found []*subject
	for _, s := range subjects {
		if !s.deleted && p.selector.matches(s, m.namespaceOf(s)) {
			found = append(found, s)
		}
	}
	return found
}

// targets are the objects that a strategic merge patch is for.
func (m *manifestReader) targets(p *patch, sp strategicPatch, subjects []*subject) ([]*subject, error) {
	if p.selector != nil {
		return m.selected(p, subjects), nil
	}
	var found []*subject
	for _, s := range subjects {
		if !s.deleted && s.GetAPIVersion() == sp.apiVersion && s.GetKind() == sp.kind && s.GetName() == sp.name &&
			(sp.namespace == "" || sp.namespace == m.namespaceOf(s)) {
			found = append(found, s)
		}
	}
	named := fmt.Sprintf("%s %s %s", sp.apiVersion, sp.kind, sp.name)
	switch len(found) {
	case 0:
		return nil, failf(ReasonPatchFailed, "%s is for %s, which isn't among the add-on's objects; correct apiVersion, kind and metadata.name in it, or take it out", p.field, named)
	case 1:
		return found, nil
	}
	return nil, failf(ReasonPatchFailed, "%s is for %s, and there are %d of these; set metadata.namespace in it, or target beside it", p.field, named, len(found))
}

// namespaceOf is the namespace that an object is going to have, "" if it is known to have none.
func (m *manifestReader) namespaceOf(s *subject) string {
	namespaced, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: s.GetAPIVersion(), Kind: s.GetKind()})
	switch {
	case known && !namespaced:
		return ""
	case s.GetNamespace() == "":
		return m.namespace
	}
	return s.GetNamespace()
}

func (s *selector) matches(object *subject, namespace string) bool {
	gvk := object.GroupVersionKind()
	return (s.Group == "" || s.Group == gvk.Group) &&
		(s.Version == "" || s.Version == gvk.Version) &&
		(s.Kind == "" || s.Kind == gvk.Kind) &&
		(s.namespace == nil || s.namespace.MatchString(namespace)) &&
		(s.name == nil || s.name.MatchString(object.GetName())) &&
		s.labels.Matches(labels.Set(object.GetLabels()))
}

// each changes each of the objects. That there is none is an error: kustomize says
// nothing then, and the change that was wanted is missed in the cluster.
func (p *patch) each(found []*subject, change func(map[string]any) (map[string]any, error)) error {
	if len(found) == 0 {
		return failf(ReasonPatchFailed, "%s: none of the add-on's objects matches its target (%s); correct the target, or take the patch out", p.field, p.selector)
	}
	for _, s := range found {
		after, err := guard(change, s.Object)
		if err != nil {
			return failf(ReasonPatchFailed, "%s can't be applied to %s %s: %w", p.field, s.GetKind(), s.GetName(), err)
		}
		if after == nil {
			s.deleted = true
			continue
		}
		if !reflect.DeepEqual(after, s.Object) {
			s.Object, s.changed = after, true
		}
		if err := checkObject(s.Unstructured); err != nil {
			return failf(ReasonPatchFailed, "%s leaves an object that can't be applied: %w", p.field, err)
		}
	}
	return nil
}

// guard makes an error of a panic in the libraries, so that the patch is named.
func guard(change func(map[string]any) (map[string]any, error), object map[string]any) (after map[string]any, err error) {
	defer func() {
		if recover() != nil { // its value may hold secrets
			err = fmt.Errorf("it makes kustomize's library fail")
		}
	}()
	return change(object)
}

func (p *patch) applyOperations(object map[string]any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if data, err = p.operations.Apply(data); err != nil {
		return nil, err
	}
	var after map[string]any
	if err := utiljson.Unmarshal(data, &after); err != nil {
		return nil, err
	}
	if after == nil {
		return nil, fmt.Errorf("nothing is left of it; a strategic merge patch with $patch: delete deletes an object")
	}
	return after, nil
}

// apply merges the patch into an object, which keeps its name, namespace and kind.
// The result is nil if the patch deletes the object.
func (sp strategicPatch) apply(object map[string]any) (map[string]any, error) {
	text, err := yamlOf(object)
	if err != nil {
		return nil, err
	}
	target, err := kyaml.Parse(text)
	if err != nil {
		return nil, err
	}
	patch, err := kyaml.Parse(sp.text)
	if err == nil {
		err = patch.DeAnchor() // merge keys, too, which the filter takes for fields
	}
	if err != nil {
		return nil, err
	}
	before := &unstructured.Unstructured{Object: object}
	patch.SetApiVersion(before.GetAPIVersion()) // by which the library finds how lists are merged
	patch.SetKind(before.GetKind())
	merged, err := patchstrategicmerge.Filter{Patch: patch}.Filter([]*kyaml.RNode{target})
	if err != nil {
		return nil, err
	}
	if len(merged) == 0 || merged[0].IsNilOrEmpty() {
		return nil, nil
	}
	data, err := merged[0].MarshalJSON()
	if err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &after.Object); err != nil {
		return nil, err
	}
	if after.Object == nil {
		return nil, nil
	}
	metadata, ok := after.Object["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it takes metadata away")
	}
	metadata["name"] = before.GetName()
	delete(metadata, "namespace")
	if namespace := before.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	after.SetAPIVersion(before.GetAPIVersion())
	after.SetKind(before.GetKind())
	return after.Object, nil
}
