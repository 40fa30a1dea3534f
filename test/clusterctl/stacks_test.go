// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// newStack is an AddonStack for all Clusters of the namespace.
func newStack(namespace string, addons ...addonsv1.Addon) *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name = namespace, "platform"
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	s.Spec.Addons = addons
	return s
}

// makeStack makes an AddonStack with an add-on for each kind of input, and what these refer to.
func (tm *team) makeStack(hub *server) {
	tm.t.Helper()
	moved := map[string]string{clusterctlv1.ClusterctlMoveLabel: ""}
	values := &corev1.Secret{ObjectMeta: tm.named("settings-values"), StringData: map[string]string{"values.yaml": "text: from a Secret\n"}}
	values.Labels = moved
	chart := &corev1.ConfigMap{ObjectMeta: tm.named("charts"), BinaryData: map[string][]byte{"settings.tgz": packed(tm.t, "settings")}}
	chart.Labels = moved
	tm.create(hub, values)
	tm.create(hub, chart)
	tm.create(hub, newStack(tm.namespace,
		addonsv1.Addon{
			Name: "settings", Namespace: tm.namespace,
			Chart:          addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "charts", Key: "settings.tgz"}},
			ValuesFrom:     []addonsv1.ValuesReference{{Kind: "Secret", Name: "settings-values"}},
			ValuesTemplate: "region: {{ .InfraCluster.spec.region }}\n",
		},
		addonsv1.Addon{Name: "vault", Namespace: tm.namespace, Chart: addonsv1.ChartSource{Path: "vault"}},
		addonsv1.Addon{Name: "web", Namespace: tm.namespace, Chart: addonsv1.ChartSource{Path: "web"}, DependsOn: []string{"vault"}},
	))
}

// packed is a chart as "helm package" makes it.
func packed(t *testing.T, name string) []byte {
	t.Helper()
	chart, err := loader.LoadDir(filepath.Join(charts, name))
	must.Succeed(t, err)
	file, err := chartutil.Save(chart, t.TempDir())
	must.Succeed(t, err)
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	return data
}

// changeStack changes the AddonStack.
func (tm *team) changeStack(hub *server, mutate func(*addonsv1.AddonStackSpec)) {
	tm.t.Helper()
	s := newStack(tm.namespace)
	NewWithT(tm.t).Eventually(func() error {
		if err := hub.Get(tm.t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		mutate(&s.Spec)
		return hub.Update(tm.t.Context(), s)
	}).Should(Succeed())
}

func valuesOf(values map[string]any) *apiextensionsv1.JSON {
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // of a literal
	}
	return &apiextensionsv1.JSON{Raw: raw}
}
