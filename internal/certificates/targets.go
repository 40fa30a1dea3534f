// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configurationKind = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	mutatingKind      = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}
	crdKind           = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// target is a cluster-wide object with CA bundles.
type target struct {
	kind     schema.GroupVersionKind
	resource string
	name     string
}

func targets(crds []string) []target {
	all := []target{
		{kind: configurationKind, resource: "validatingwebhookconfigurations", name: ConfigurationName},
		{kind: mutatingKind, resource: "mutatingwebhookconfigurations", name: MutatingConfigurationName},
	}
	for _, name := range crds {
		all = append(all, target{kind: crdKind, resource: "customresourcedefinitions", name: name})
	}
	return all
}

type serviceKey struct{ namespace, name string }

// clientConfigs returns where the object says how the API server is to reach the Service. What goes
// elsewhere isn't served with our certificate.
func clientConfigs(object *unstructured.Unstructured, service serviceKey) []map[string]any {
	conversion, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook")
	webhooks, _ := object.Object["webhooks"].([]any)
	var all []map[string]any
	for _, webhook := range append(webhooks[:len(webhooks):len(webhooks)], conversion) {
		fields, _ := webhook.(map[string]any)
		config, _ := fields["clientConfig"].(map[string]any)
		namespace, _, _ := unstructured.NestedString(config, "service", "namespace")
		name, _, _ := unstructured.NestedString(config, "service", "name")
		if (serviceKey{namespace: namespace, name: name}) == service {
			all = append(all, config)
		}
	}
	return all
}
