// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/base64"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are what a management cluster needs of Cluster API besides a manager.
type manifests struct {
	crds     []*apiextensionsv1.CustomResourceDefinition
	webhooks []*unstructured.Unstructured
}

// readManifests builds Cluster API's own kustomization, for a webhook server at a URL with a certificate of ca.
func readManifests(config, url string, ca []byte) (*manifests, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), config)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", config, err)
	}
	m := &manifests{}
	for _, r := range resources.Resources() {
		data, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &obj.Object); err != nil {
			return nil, err
		}
		redirect(obj.Object, url, base64.StdEncoding.EncodeToString(ca))
		switch obj.GetKind() {
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
				return nil, err
			}
			m.crds = append(m.crds, crd)
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			m.webhooks = append(m.webhooks, obj)
		}
	}
	return m, nil
}

// redirect replaces the Service in each clientConfig, of webhooks and of conversions, by a URL.
func redirect(tree any, url, ca string) {
	switch t := tree.(type) {
	case map[string]any:
		if config, ok := t["clientConfig"].(map[string]any); ok {
			if service, ok := config["service"].(map[string]any); ok {
				config["url"], config["caBundle"] = fmt.Sprint(url, service["path"]), ca
				delete(config, "service")
			}
		}
		for _, child := range t {
			redirect(child, url, ca)
		}
	case []any:
		for _, child := range t {
			redirect(child, url, ca)
		}
	}
}
