// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestOrphanWaitsForWebhook lets go of an add-on while a webhook keeps its objects from
// being written. They are not left with labels that no other add-on may take over.
func TestOrphanWaitsForWebhook(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace()
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	labels := e.get("v1", "ConfigMap", ns, "a").GetLabels()
	e.Expect(labels).NotTo(BeEmpty())

	e.apply("kubectl", strings.ReplaceAll(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: check.NS.example.com
  clientConfig: {service: {name: nobody, namespace: NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 1
  admissionReviewVersions: [v1]
`, "NS", ns))
	settings := e.get("v1", "ConfigMap", ns, "a")
	e.Eventually(func() error {
		return e.target.Client.Update(e.ctx, settings.DeepCopy(), client.DryRunAll)
	}).WithTimeout(10*time.Second).Should(HaveOccurred(), "the webhook is to be asked")

	o, err := e.d.Remove(e.ctx, e.target, want.Release)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Gone).To(BeFalse())
	e.Expect(o.Phase).To(Equal(addonsv1.AddonRemoving))
	e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForWebhook))
	e.Expect(o.Message).To(ContainSubstring("check." + ns))
	e.Expect(o.RetryAfter).To(Equal(5 * time.Second))
	e.Expect(e.records(ns)[want.Release].Owned).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a").GetLabels()).To(Equal(labels))

	e.Expect(e.target.Client.Delete(e.ctx, e.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", ns))).To(Succeed())
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a").GetLabels()).To(BeEmpty())
}
