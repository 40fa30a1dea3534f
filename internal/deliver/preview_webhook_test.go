// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/plan"
)

// mutating starts a webhook that adds a key to each ConfigMap of a namespace, until it is ended. It returns once the API server asks it.
func (e *env) mutating(ns string) (end func()) {
	e.t.Helper()
	patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/data/injected","value":"of-the-webhook"}]`))
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Request struct{ UID string } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			e.t.Error(err)
		}
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`, asked.Request.UID, patch)
	}))
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}))
	e.apply("somebody", fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: inject.%[1]s.example.com
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, ns, webhook.URL, authority))
	e.Eventually(func() string {
		e.apply("somebody", namespaced(ns, configMap("probe", "x")))
		value, _, _ := unstructured.NestedString(e.get("v1", "ConfigMap", ns, "probe").Object, "data", "injected")
		return value
	}).Should(Equal("of-the-webhook"))
	return func() {
		e.delete(e.get("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", ns))
		webhook.Close()
	}
}

// TestPlanTellsWebhooksApart plans a change of an object to which a webhook adds a field.
func TestPlanTellsWebhooksApart(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, configMaps("1", "one")))
	defer e.mutating(ns)()
	want := e.want(ns, configMaps("2", "two"))
	a := e.preview(want)
	e.Expect(planned(a)).To(Equal([]string{"Change ConfigMap a"}))
	e.Expect(changeOf(a, "a").Altered).To(ConsistOf(
		And(HaveField("Path", ".data.key"), HaveField("Cause", plan.ByManifest), HaveField("New", `"two"`)),
		And(HaveField("Path", ".data.injected"), HaveField("Cause", plan.ByServer), HaveField("New", plan.Hidden)),
	), "%+v", a)
	e.meter.reset()
	e.settle(want)
	e.expectPlanned(a, "what the webhook adds is written with the change")
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(HaveKeyWithValue("injected", "of-the-webhook"))
}
