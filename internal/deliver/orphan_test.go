// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestOrphanWaitsForWebhook lets go of an add-on while a webhook keeps its objects from
// being written. They are not left with labels that no other add-on may take over.
func TestOrphanWaitsForWebhook(t *testing.T) {
	e, ns := alone(t)
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
	e.Expect(o.Reason).To(Equal(object.ReasonWaitingForWebhook))
	e.Expect(o.Message).To(ContainSubstring("check." + ns))
	e.Expect(o.RetryAfter).To(Equal(5 * time.Second))
	e.Expect(e.records(ns)[want.Release].Owned).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a").GetLabels()).To(Equal(labels))

	e.Expect(e.target.Client.Delete(e.ctx, e.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", ns))).To(Succeed())
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a").GetLabels()).To(BeEmpty())
}

// TestOrphanLeavesWhatIsAnotherAddons: an object that another add-on made again stays its own.
func TestOrphanLeavesWhatIsAnotherAddons(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a") + configMap("mine", "a")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.install(e.wantNamed("other", ns, chart{version: "1", manifest: configMap("x", "b")}))
	before := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine").GetLabels()).To(BeEmpty())
	e.Expect(e.get("v1", "ConfigMap", ns, "x").GetResourceVersion()).To(Equal(before.GetResourceVersion()))
}

// TestOrphanOfALargeRelease lets go of an add-on whose record takes several Secrets. Helm shows
// the release, and Chandler can adopt it again, with all that was in it.
func TestOrphanOfALargeRelease(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	manifest := largeManifest()
	want := e.want(ns, chart{version: "1", manifest: manifest + configMap("old", "x")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(And(ContainSubstring(ns+"/demo"), ContainSubstring("helm uninstall")))
	releases, err := action.NewList(helm(e, ns)).Run()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(releases).To(HaveLen(1))
	secrets := &corev1.SecretList{}
	e.Expect(e.target.Client.List(e.ctx, secrets, inNamespace(ns))).To(Succeed())
	e.Expect(len(secrets.Items)).To(BeNumerically(">", 1))
	for _, s := range secrets.Items {
		e.Expect(s.Labels).NotTo(HaveKey(addonsv1.AddonLabel), s.Name)
	}
	e.Expect(e.records(ns)[want.Release].Owned).To(BeFalse())
	// Nothing that is asked to be removed once more takes the continuation along.
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())

	e.restart()
	again := e.want(ns, chart{version: "2", manifest: manifest})
	e.settleAs(again, deliver.ReasonReleaseExists)
	again.Adoption = addonsv1.AdoptionPolicyAdopt
	e.Expect(e.install(again).Revision).To(BeEquivalentTo(2))
	e.Expect(e.remove(again.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "c0")).To(BeNil())
	e.Expect(e.snapshot(ns)).To(ContainElement("0 secrets"))
}

// TestOrphanThatHelmHasFieldsOf lets go of an object of which Helm set a field meanwhile: all of it is Helm's then.
func TestOrphanThatHelmHasFieldsOf(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.apply("helm", theirConfigMap(ns, "x", "a"))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	x := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(x.GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel))
	e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "a"}))
	e.Expect(x.GetManagedFields()).To(HaveLen(1))
	e.Expect(x.GetManagedFields()[0].Manager).To(Equal("helm"))
}

// TestOrphanLeavesHelmItsFields lets go of objects of which Helm set a field that the add-on doesn't have, before or
// after the add-on's last apply. Helm removes it once its chart drops it.
func TestOrphanLeavesHelmItsFields(t *testing.T) {
	e, ns := beside(t)
	ofHelm := func(name, data string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {%s}\n", name, ns, data)
	}
	want := e.want(ns, chart{version: "1", manifest: configMap("before", "1") + configMap("after", "1")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.apply("helm", ofHelm("before", "theirs: x"))
	before := e.get("v1", "ConfigMap", ns, "before")
	managed := before.GetManagedFields()
	for i := range managed {
		managed[i].Time = &metav1.Time{Time: time.Now().Add(-time.Hour)} // else the second that both were written in decides nothing
	}
	before.SetManagedFields(managed)
	e.Expect(e.target.Client.Update(e.ctx, before)).To(Succeed())
	want = e.want(ns, chart{version: "2", manifest: configMap("before", "2") + configMap("after", "2")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.apply("helm", ofHelm("after", "theirs: x"))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	for _, name := range []string{"before", "after"} {
		e.Expect(e.get("v1", "ConfigMap", ns, name).Object["data"]).To(Equal(map[string]any{"key": "2", "theirs": "x"}), name)
		e.apply("helm", ofHelm(name, ""))
		e.Expect(e.get("v1", "ConfigMap", ns, name).Object["data"]).To(Equal(map[string]any{"key": "2"}), name)
	}
}
