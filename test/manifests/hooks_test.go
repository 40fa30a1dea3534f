// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
)

// Cluster API reaches the hooks where the API server reaches the webhooks, and trusts the certificate that is there. No
// overlay has an ExtensionConfig by itself: while its server is down, Cluster API doesn't start.
func TestHooksAreReached(t *testing.T) {
	for path, tc := range map[string]struct{ component, secret string }{
		allInOne: {"hooks", "chandler-webhook-service-cert"},
		shared:   {"hooks", "chandler-webhook-service-cert"},
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(find[runtimev1.ExtensionConfig](t, build(t, path), "ExtensionConfig")).To(BeEmpty())

			objects := build(t, withComponent(t, path, tc.component))
			service := one[corev1.Service](t, objects, "Service")
			config := one[runtimev1.ExtensionConfig](t, objects, "ExtensionConfig")
			g.Expect(config.Spec.ClientConfig.Service.Name).To(Equal(service.Name))
			g.Expect(config.Spec.ClientConfig.Service.Namespace).To(Equal(service.Namespace))
			g.Expect(service.Spec.Ports).To(ContainElement(And(
				HaveField("Port", Equal(*config.Spec.ClientConfig.Service.Port)), HaveField("TargetPort.StrVal", "hook-server"))))
			g.Expect(config.Annotations).To(HaveKeyWithValue(runtimev1.InjectCAFromSecretAnnotation, service.Namespace+"/"+tc.secret))
		})
	}
}

// The pods are in reach at the ports that they have. Cluster API's core provider alone reaches the hooks, as it is installed
// by its own manifests.
func TestWhoReachesThePorts(t *testing.T) {
	core := clusterAPINamespace(t)
	for _, path := range []string{allInOne, shared} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			objects := build(t, path)
			pods := one[appsv1.Deployment](t, objects, "Deployment").Spec.Template
			policy := one[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
			g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress), "controllers reach any address")
			g.Expect(selects(t, &policy.Spec.PodSelector, pods.Labels)).To(BeTrue())
			for _, port := range pods.Spec.Containers[0].Ports {
				reached := func(namespace map[string]string) bool { return admits(t, &policy, port.Name, namespace) }
				g.Expect(reached(core)).To(BeTrue(), port.Name)
				g.Expect(reached(map[string]string{"kubernetes.io/metadata.name": "tenant"})).To(Equal(port.Name != "hook-server"), port.Name)
			}
		})
	}
}

// admits reports whether a policy lets the pods of a namespace with these labels reach a port.
func admits(t *testing.T, policy *networkingv1.NetworkPolicy, port string, namespace map[string]string) bool {
	return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.StrVal == port }) &&
			(len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
				return peer.PodSelector == nil && selects(t, peer.NamespaceSelector, namespace)
			}))
	})
}

func selects(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	must.Succeed(t, err)
	return s.Matches(labels.Set(set))
}

// clusterAPINamespace returns the labels of the namespace that Cluster API's manifests make for the core provider.
func clusterAPINamespace(t *testing.T) map[string]string {
	t.Helper()
	dir, err := apiserver.ModuleDir(t.Context(), "sigs.k8s.io/cluster-api")
	must.Succeed(t, err)
	objects, err := kustomization.Build(filepath.Join(dir, "core/config/default"))
	must.Succeed(t, err)
	return one[corev1.Namespace](t, objects, "Namespace").Labels
}
