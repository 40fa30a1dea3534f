// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// manyConfigMaps is the number of ConfigMaps of manyChart.
const manyConfigMaps = 39

var manyChart = chart{"templates/maps.yaml": strings.Join([]string{
	fmt.Sprintf("{{ range until %d }}", manyConfigMaps), "---", configMap("map-{{ . }}", "first"), "{{ end }}",
}, "\n")}

// TestRefusedByPolicy has an admission policy that refuses one object of an
// installation, and goes away later.
func TestRefusedByPolicy(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	path := tn.writeChart("many", "1.0.0", manyChart)
	policy := s.refuseConfigMap(t, tn.namespace, "map-7", "no seventh map in this cluster")
	tn.makeCluster("prod", s, nil)
	tn.startManager()
	tn.makeStack("platform", nil, tn.addon("many", path))
	tn.awaitCluster("prod", "the condition is to name the object, and say what the policy said",
		phase("many", addonsv1.AddonFailed, "", "map-7"), phase("many", addonsv1.AddonFailed, "", "no seventh map in this cluster"))
	poll(t, patience, "the other objects are to be applied", func() error {
		if n := s.mapsWith(t, tn.namespace, "first"); n != manyConfigMaps-1 {
			return fmt.Errorf("there are %d of %d ConfigMaps", n, manyConfigMaps-1)
		}
		return nil
	})
	tn.Expect(s.Delete(t.Context(), policy)).To(Succeed())
	tn.awaitReady("platform", "the object is tried again by itself: nobody changes the stack when a policy goes")
	tn.Expect(s.release(t, tn.namespace, "many").status).To(BeEquivalentTo("deployed"))
}

// mapsWith counts the ConfigMaps of a namespace that have the text.
func (s *server) mapsWith(t *testing.T, namespace, text string) int {
	t.Helper()
	list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	n := 0
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, "map-") && c.Data["text"] == text {
			n++
		}
	}
	return n
}

// refuseConfigMap makes a policy that refuses one ConfigMap of a namespace, and
// returns the binding that puts it in force.
func (s *server) refuseConfigMap(t *testing.T, namespace, name, message string) client.Object {
	t.Helper()
	s.createNamespace(t, namespace)
	binding := s.evaluate(t, "refuse-"+namespace, namespace, coreResource("configmaps"), admissionv1.Deny, admissionv1.Validation{
		Expression: "object.metadata.name != " + quoted(name), Message: message,
	})
	refused := &corev1.ConfigMap{}
	refused.Namespace, refused.Name = namespace, name
	s.awaitRefusal(t, refused)
	return binding
}

// TestHangingWebhook installs into a namespace whose admission webhook takes each
// request and never answers. That is the matter of this add-on: the next one installs,
// and nobody is told that the cluster is silent.
func TestHangingWebhook(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seconds *int32
		told    clusterCheck
	}{
		"for as long as is usual":    {nil, phase("web", addonsv1.AddonInstalling, "WaitingForWebhook", `"hang.example.org"`)},
		"for as long as is possible": {ptr.To[int32](30), answered("web")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn, s := newProd(t, 1)
			hung := tn.namespace + "-hung"
			s.createNamespace(t, hung)
			hook := hangingWebhook(t, hung, tc.seconds)
			tn.Expect(s.Create(t.Context(), hook)).To(Succeed())
			t.Cleanup(func() { tn.Expect(s.Delete(context.WithoutCancel(t.Context()), hook)).To(Succeed()) })

			tn.makeStack("aaa", nil, tn.small("web", func(a *addonsv1.Addon) { a.Namespace = hung }))
			tn.makeStack("zzz", nil, tn.small("later"))
			tn.awaitCluster("prod", "the next add-on is to install", phase("later", addonsv1.AddonReady, "", ""), tc.told)
		})
	}
}

// answered expects an add-on to tell that the cluster answered: of the webhook, or that
// it gave the request up, whichever comes first.
func answered(addon string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		s := statusOf(ca, addon)
		if s == nil || s.Reason != "WaitingForWebhook" && !strings.HasPrefix(s.Message, "The cluster answered") {
			return fmt.Errorf("add-on %s: %+v", addon, s)
		}
		return nil
	}
}

// hangingWebhook is asked about ConfigMaps of a namespace, and doesn't answer.
func hangingWebhook(t *testing.T, namespace string, timeoutSeconds *int32) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	t.Cleanup(func() { close(done); server.Close() })
	hook := &admissionv1.ValidatingWebhookConfiguration{Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "hang.example.org",
		ClientConfig: admissionv1.WebhookClientConfig{
			URL:      ptr.To(server.URL),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.OperationAll},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		TimeoutSeconds:          timeoutSeconds,
		FailurePolicy:           ptr.To(admissionv1.Fail),
		SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}}}
	hook.Name = namespace
	return hook
}
