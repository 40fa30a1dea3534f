// SPDX-License-Identifier: Apache-2.0

// Package kustomization builds the overlays of config/ as `kustomize build` does, reads
// from them what a kubelet would, and writes overlays of instances.
package kustomization

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build returns the objects that the folder's kustomization.yaml makes, in the order
// in which they are to be created.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces and CRDs before what needs them
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		data, err := resource.MarshalJSON()
		o := &unstructured.Unstructured{}
		if err == nil {
			err = o.UnmarshalJSON(data) // which has int64 for numbers, where kustomize has int
		}
		if err != nil {
			return nil, fmt.Errorf("building %s: reading %s: %w", folder, resource.CurId(), err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// Find returns the objects of a kind as T, the kind's Go type.
func Find[T any](objects []*unstructured.Unstructured, kind string) ([]T, error) {
	var found []T
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &typed, true); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, o.GetName(), err)
		}
		found = append(found, typed)
	}
	return found, nil
}

// Redirect replaces the Service in each clientConfig of an object, of webhooks and of conversions, by a URL. The server there
// has a certificate of ca, which is PEM in base64.
func Redirect(tree any, url, ca string) {
	switch t := tree.(type) {
	case map[string]any:
		if config, ok := t["clientConfig"].(map[string]any); ok {
			if service, ok := config["service"].(map[string]any); ok {
				config["url"], config["caBundle"] = fmt.Sprint(url, service["path"]), ca
				delete(config, "service")
			}
		}
		for _, child := range t {
			Redirect(child, url, ca)
		}
	case []any:
		for _, child := range t {
			Redirect(child, url, ca)
		}
	}
}
