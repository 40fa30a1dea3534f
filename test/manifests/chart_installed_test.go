// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmkube "helm.sh/helm/v4/pkg/kube"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// certManagerCRD has a kind of cert-manager's, with any fields.
const certManagerCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// TestChartIsInstalled has Helm install, upgrade and uninstall the chart on a real API server: webhooks for all, and two
// instances beside each other. AddonStacks stay.
func TestChartIsInstalled(t *testing.T) {
	long.InCI(t)
	g := NewWithT(t)
	crds := t.TempDir()
	for plural, kind := range map[string]string{"certificate": "Certificate", "issuer": "Issuer"} {
		g.Expect(os.WriteFile(filepath.Join(crds, plural+".yaml"), fmt.Appendf(nil, certManagerCRD, plural, kind), 0o600)).To(Succeed())
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "chart", CRDPaths: []string{crds}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	c, err := client.New(cp.Config(), client.Options{Scheme: apiserver.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})).To(Succeed())
	h := &helm{t: t, chart: loadChart(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	g.Expect(os.WriteFile(h.kubeconfig, cp.Kubeconfig(), 0o600)).To(Succeed())

	h.install("hooks", map[string]any{"mode": "shared"})
	h.install("red", map[string]any{"mode": "instance", "namespaces": []any{"team-a"}})
	h.install("blue", map[string]any{"mode": "instance", "watchFilter": "blue"})
	h.upgrade("red", map[string]any{"mode": "instance", "namespaces": []any{"team-a"}, "replicas": 3, "extraArgs": []any{"--qps=1"}})
	deployment := &appsv1.Deployment{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "red", Name: "chandler-controller-manager-red"}, deployment)).To(Succeed())
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--qps=1"))
	g.Expect(c.DeleteAllOf(t.Context(), &admissionv1.ValidatingWebhookConfiguration{})).To(Succeed(), "nobody answers for them")
	stack := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "platform"}}
	stack.Spec.ClusterSelector = &metav1.LabelSelector{}
	stack.Spec.Addons = []addonsv1.Addon{{Name: "web", Chart: addonsv1.ChartSource{Path: "web.tgz"}}}
	g.Expect(c.Create(t.Context(), stack)).To(Succeed())

	for _, release := range []string{"red", "blue", "hooks"} {
		h.uninstall(release)
	}
	left := &appsv1.DeploymentList{}
	g.Expect(c.List(t.Context(), left)).To(Succeed())
	g.Expect(left.Items).To(BeEmpty())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(stack), stack)).To(Succeed(), "what people wrote stays")
	h.install("hooks", map[string]any{"mode": "shared"})
	h.upgrade("hooks", map[string]any{"mode": "all"})
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "hooks", Name: "chandler-controller-manager"}, deployment)).To(Succeed())
}

// helm acts on releases, each in a namespace of its name.
type helm struct {
	t          *testing.T
	chart      *helmchart.Chart
	kubeconfig string
}

func (h *helm) configuration(name string) *action.Configuration {
	h.t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &h.kubeconfig, &name
	config := action.NewConfiguration()
	must.Succeed(h.t, config.Init(flags, name, "secret"))
	return config
}

func (h *helm) install(name string, values map[string]any) {
	h.t.Helper()
	install := action.NewInstall(h.configuration(name))
	install.ReleaseName, install.Namespace, install.CreateNamespace = name, name, true
	install.WaitStrategy, install.Timeout = helmkube.HookOnlyStrategy, time.Minute
	if _, err := install.RunWithContext(h.t.Context(), h.chart, values); err != nil {
		h.t.Fatalf("installing %s: %v", name, err)
	}
}

func (h *helm) upgrade(name string, values map[string]any) {
	h.t.Helper()
	upgrade := action.NewUpgrade(h.configuration(name))
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = name, helmkube.HookOnlyStrategy, time.Minute
	if _, err := upgrade.RunWithContext(h.t.Context(), name, h.chart, values); err != nil {
		h.t.Fatalf("upgrading %s: %v", name, err)
	}
}

func (h *helm) uninstall(name string) {
	h.t.Helper()
	uninstall := action.NewUninstall(h.configuration(name))
	uninstall.WaitStrategy, uninstall.Timeout = helmkube.HookOnlyStrategy, time.Minute
	if _, err := uninstall.Run(name); err != nil {
		h.t.Fatalf("uninstalling %s: %v", name, err)
	}
}
