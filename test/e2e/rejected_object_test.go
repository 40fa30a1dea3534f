// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// manyConfigMaps is the number of ConfigMaps of manyChart, which has one
// Service besides.
const manyConfigMaps = 39

// manyChart has 40 objects, and with .Values.old one more.
var manyChart = chart{
	"values.yaml": "port: 80\ntext: first\nold: false\n",
	"templates/maps.yaml": strings.Join([]string{
		fmt.Sprintf("{{ range until %d }}", manyConfigMaps), "---",
		configMap("map-{{ . }}", "{{ $.Values.text | quote }}"), "{{ end }}",
	}, "\n"),
	"templates/old.yaml": "{{ if .Values.old }}\n" + configMap("old", "old") + "\n{{ end }}",
	"templates/service.yaml": strings.Join([]string{
		"apiVersion: v1", "kind: Service", "metadata: {name: service}",
		"spec: {clusterIP: None, ports: [{port: {{ .Values.port }}}]}",
	}, "\n"),
}

func TestRejectedObject(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 0)
	path := tn.writeChart("many", "1.0.0", manyChart)

	tn.install(tn.addon("many", path, withValues(map[string]any{"old": true})))

	tn.changeAddon("platform", "many", withValues(map[string]any{"text": "second", "port": 70000}))
	tn.awaitCluster("prod", "the condition is to name the object, and say what the API server said",
		phase("many", addonsv1.AddonFailed, "", "Service"),
		phase("many", addonsv1.AddonFailed, "", tn.namespace+"/service"),
		phase("many", addonsv1.AddonFailed, "", "70000"),
		condition(addonsv1.AddonsReadyCondition, metav1.ConditionFalse, addonsv1.AddonsFailedReason, "service"),
		condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "", "service"))
	tn.awaitStack("platform", "the stack is to say so, too", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersFailedReason, "service")
	poll(t, patience, "the other 39 objects are to be applied", func() error {
		if n := s.mapsWith(t, tn.namespace, "second"); n != manyConfigMaps {
			return fmt.Errorf("%d of %d ConfigMaps have the new text", n, manyConfigMaps)
		}
		return nil
	})
	tn.settle()
	_, err := s.clientset.CoreV1().ConfigMaps(tn.namespace).Get(t.Context(), "old", metav1.GetOptions{})
	tn.Expect(err).NotTo(HaveOccurred(), "nothing is pruned while an object can't be applied")
	ca := tn.awaitCluster("prod", "the counts are to tell", phase("many", addonsv1.AddonFailed, "", ""))
	tn.Expect(statusOf(ca, "many").Objects).To(HaveValue(HaveField("Total", BeEquivalentTo(manyConfigMaps+1))))

	tn.changeAddon("platform", "many", withValues(map[string]any{"text": "third", "port": 8080}))
	tn.awaitReady("platform", "a port that is one is to heal the add-on")
	tn.Expect(s.mapsWith(t, tn.namespace, "third")).To(Equal(manyConfigMaps))
	_, err = s.clientset.CoreV1().ConfigMaps(tn.namespace).Get(t.Context(), "old", metav1.GetOptions{})
	tn.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "what isn't rendered any more is pruned once all is well")
}

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

// TestEmptyRendering has values that make a chart render nothing.
func TestEmptyRendering(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 0)
	path := tn.writeChart("switched", "1.0.0", chart{
		"values.yaml":         "enabled: true\n",
		"templates/text.yaml": "{{ if .Values.enabled }}\n" + configMap("text", "x") + "\n{{ end }}",
	})
	tn.install(tn.addon("switched", path))
	before := s.contents(t, tn.namespace).names(tn.namespace)

	tn.changeAddon("platform", "switched", withValues(map[string]any{"enabled": false}))
	tn.awaitCluster("prod", "a chart that suddenly has no objects is a mistake, and said so", phase("switched", addonsv1.AddonFailed, "EmptyRendering", "renders nothing"))
	tn.settle()
	tn.Expect(s.contents(t, tn.namespace)).To(HaveKey("ConfigMap. "+tn.namespace+"/text"), "nothing is pruned because of an empty rendering")
	tn.Expect(s.release(t, tn.namespace, "switched").status).To(BeEquivalentTo("deployed"), "the release stays as it was")

	tn.changeAddon("platform", "switched", func(a *addonsv1.Addon) { a.Values = nil })
	tn.awaitReady("platform", "the old values are to heal the add-on")
	tn.Expect(s.contents(t, tn.namespace).names(tn.namespace)).To(Equal(before), "and nothing was left over")
}

// mapsWith counts the ConfigMaps of a namespace that have the text.
func (s *server) mapsWith(t *testing.T, namespace, text string) int {
	t.Helper()
	list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
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
	binding := s.judge(t, "refuse-"+namespace, namespace, coreResource("configmaps"), admissionv1.Deny, admissionv1.Validation{
		Expression: "object.metadata.name != " + quoted(name), Message: message,
	})
	refused := &corev1.ConfigMap{}
	refused.Namespace, refused.Name = namespace, name
	s.awaitRefusal(t, refused)
	return binding
}
