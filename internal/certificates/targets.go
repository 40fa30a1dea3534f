// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"encoding/base64"
	"fmt"

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

// clientConfig is where an object says how the API server is to reach a webhook.
type clientConfig struct {
	path   string // of the bundle, as a JSON pointer
	bundle []byte
}

// clients returns those of the object that go to the Service. Others aren't served with
// our certificate.
func (t target) clients(object *unstructured.Unstructured, service serviceKey) []clientConfig {
	if t.kind == crdKind {
		return ofService("/spec/conversion/webhook/clientConfig", object.Object, service, "spec", "conversion", "webhook", "clientConfig")
	}
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	var all []clientConfig
	for i, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		all = append(all, ofService(fmt.Sprintf("/webhooks/%d/clientConfig", i), fields, service, "clientConfig")...)
	}
	return all
}

func ofService(pointer string, fields map[string]any, service serviceKey, path ...string) []clientConfig {
	config, _, _ := unstructured.NestedMap(fields, path...)
	namespace, _, _ := unstructured.NestedString(config, "service", "namespace")
	name, _, _ := unstructured.NestedString(config, "service", "name")
	if (serviceKey{namespace: namespace, name: name}) != service {
		return nil
	}
	encoded, _, _ := unstructured.NestedString(config, "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		bundle = nil // the API server wouldn't have taken it
	}
	return []clientConfig{{path: pointer + "/caBundle", bundle: bundle}}
}
