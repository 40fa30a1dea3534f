// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/cluster-chandler/chandler/internal/certificates"
)

// Cluster API reaches the hooks where the API server reaches the webhooks, and trusts the certificate that is there. No
// overlay has an ExtensionConfig by itself: while its server is down, Cluster API doesn't start.
func TestHooksAreReached(t *testing.T) {
	for path, tc := range map[string]struct{ component, secret string }{
		allInOne:   {"hooks", "chandler-webhook-service-cert"},
		shared:     {"hooks", "chandler-webhook-service-cert"},
		selfSigned: {"hooks-selfsigned", certificates.SecretName},
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(find[runtimev1.ExtensionConfig](t, build(t, path), "ExtensionConfig")).To(BeEmpty())

			objects := build(t, withComponent(t, path, tc.component))
			service := one[corev1.Service](t, objects, "Service")
			config := one[runtimev1.ExtensionConfig](t, objects, "ExtensionConfig")
			g.Expect(config.Spec.ClientConfig.Service.Name).To(Equal(service.Name))
			g.Expect(config.Spec.ClientConfig.Service.Namespace).To(Equal(service.Namespace))
			g.Expect(*config.Spec.ClientConfig.Service.Port).To(Equal(service.Spec.Ports[0].Port))
			g.Expect(config.Annotations).To(HaveKeyWithValue(runtimev1.InjectCAFromSecretAnnotation, service.Namespace+"/"+tc.secret))
		})
	}
}
