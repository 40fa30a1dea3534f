// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

const injectFrom = "cert-manager.io/inject-ca-from"

// The API server reaches the webhooks: by a Service that selects their pods.
func TestWebhooksAreReached(t *testing.T) {
	for _, path := range []string{allInOne, shared} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			objects := build(t, path)
			service := one[corev1.Service](t, objects, "Service")
			pods := one[appsv1.Deployment](t, objects, "Deployment").Spec.Template
			g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pods.Labels))).To(BeTrue())
			g.Expect(pods.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", service.Spec.Ports[0].TargetPort.StrVal)))

			configuration := one[admissionv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration")
			g.Expect(configuration.Name).To(Equal("chandler-validating-webhook-configuration"))
			g.Expect(configuration.Webhooks).NotTo(BeEmpty())
			g.Expect(find[admissionv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration")).To(BeEmpty(), "nothing is written otherwise than its author means")
			clients := map[string]admissionv1.WebhookClientConfig{}
			for _, webhook := range configuration.Webhooks {
				clients[webhook.Name] = webhook.ClientConfig
			}
			for name, config := range clients {
				g.Expect(config.Service.Name).To(Equal(service.Name), name)
				g.Expect(config.Service.Namespace).To(Equal(service.Namespace), name)
			}
			for _, crd := range find[apiextensionsv1.CustomResourceDefinition](t, objects, "CustomResourceDefinition") {
				served := slices.ContainsFunc(crd.Spec.Versions[1:], func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
				if !served {
					g.Expect(crd.Spec.Conversion).To(BeNil(), "%s has one version", crd.Name)
					continue
				}
				g.Expect(crd.Name).To(Equal("addonstacks.addons.cluster.x-k8s.io"), "config/certmanager has the bundle put into this one alone")
				g.Expect(crd.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
				reference := crd.Spec.Conversion.Webhook.ClientConfig.Service
				g.Expect(reference.Name).To(Equal(service.Name))
				g.Expect(reference.Namespace).To(Equal(service.Namespace))
				g.Expect(*reference.Path).To(Equal("/convert"))
			}
		})
	}
}

// With cert-manager, all that refers to the Service has its bundle from the Certificate
// that the pods serve with.
func TestCertManager(t *testing.T) {
	for path, namespace := range map[string]string{allInOne: "chandler-system", shared: "chandler-webhooks"} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			objects := build(t, path)
			certificate := object(t, objects, "Certificate")
			g.Expect(certificate.GetNamespace()).To(Equal(namespace))
			spec := certificate.Object["spec"].(map[string]any)
			service := "chandler-webhook-service." + namespace + ".svc"
			g.Expect(spec["dnsNames"]).To(ConsistOf(service, service+".cluster.local"))
			issuer := object(t, objects, "Issuer")
			g.Expect(issuer.GetNamespace()).To(Equal(namespace))
			g.Expect(spec["issuerRef"]).To(HaveKeyWithValue("name", issuer.GetName()))
			volumes := one[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Spec.Volumes
			g.Expect(volumes).To(ContainElement(HaveField("VolumeSource.Secret", HaveField("SecretName", Equal(spec["secretName"])))))

			for _, o := range objects {
				_, converts, _ := unstructured.NestedMap(o.Object, "spec", "conversion")
				if !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") && !converts {
					g.Expect(o.GetAnnotations()).NotTo(HaveKey(injectFrom), o.GetName())
					continue
				}
				g.Expect(o.GetAnnotations()).To(HaveKeyWithValue(injectFrom, namespace+"/"+certificate.GetName()), o.GetName())
			}
		})
	}
}

// Two replicas, of which one always serves: while nodes are drained, and while the
// Deployment is rolled.
func TestWebhooksStayUp(t *testing.T) {
	for _, path := range []string{shared} {
		g := NewWithT(t)
		objects := build(t, path)
		deployment := one[appsv1.Deployment](t, objects, "Deployment")
		g.Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(2))
		g.Expect(deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue()).To(BeZero())
		budget := one[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selector.Matches(labels.Set(deployment.Spec.Template.Labels))).To(BeTrue())
		g.Expect(budget.Spec.MinAvailable.IntValue()).To(Equal(1))
	}
}

// object is the only one of a kind that has no Go type here.
func object(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return objects[i]
}
