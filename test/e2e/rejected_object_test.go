// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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
