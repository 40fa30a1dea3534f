// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

const systemNamespace = "chandler-system"

// ours selects what clusterctl installed of Chandler.
var ours = client.MatchingLabels{clusterv1.ProviderNameLabel: "addon-chandler", clusterctlv1.ClusterctlLabel: ""}

// TestLifeOfAnInstallation takes one management cluster through all that clusterctl does with a provider.
func TestLifeOfAnInstallation(t *testing.T) {
	t.Parallel()
	hub := management(t, "installation")
	flags := []string{"--kubeconfig=" + hub.kubeconfig}
	initialize := append([]string{"init", "--core=cluster-api", "--bootstrap=-", "--control-plane=-", "--wait-providers", "--wait-provider-timeout=60"}, flags...)
	stack := newStack("default", addonsv1.Addon{Name: "web", Chart: addonsv1.ChartSource{Path: "web"}})

	t.Run("init", func(t *testing.T) {
		g := NewWithT(t)
		mustRun(t, append(initialize, "--addon=chandler")...)
		g.Expect(hub.provider(t)).To(HaveField("Version", olderVersion))
		for name, obj := range released(t, olderVersion) {
			installed := &unstructured.Unstructured{}
			installed.SetGroupVersionKind(obj.GroupVersionKind())
			g.Expect(hub.Get(t.Context(), client.ObjectKeyFromObject(obj), installed)).To(Succeed(), name)
			g.Expect(installed.GetLabels()).To(And(
				HaveKeyWithValue(clusterv1.ProviderNameLabel, "addon-chandler"), HaveKey(clusterctlv1.ClusterctlLabel)), name)
		}
		hooks, service := byName(t, []byte(mustRun(t, "generate", "yaml", "--from="+repository("addon-chandler", olderVersion)+"/extension-config.yaml"))), &corev1.Service{}
		g.Expect(hooks).To(HaveLen(1))
		for _, obj := range hooks {
			config := &runtimev1.ExtensionConfig{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, config, true)).To(Succeed())
			at := config.Spec.ClientConfig.Service
			g.Expect(hub.Get(t.Context(), client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, service)).To(Succeed(), "Cluster API finds the hooks")
			g.Expect(config.Annotations).To(HaveKeyWithValue(runtimev1.InjectCAFromSecretAnnotation, HavePrefix(systemNamespace+"/")))
		}
		g.Expect(hub.deployments(t)).To(ConsistOf(HaveField("Status.AvailableReplicas", BeNumerically(">", 0))))
		g.Expect(hub.crds(t)).To(And(Not(BeEmpty()), HaveEach(HaveField("Labels", HaveKeyWithValue("cluster.x-k8s.io/v1beta2", "v1beta1")))))
	})

	t.Run("a second one is refused", func(t *testing.T) {
		_, log, err := clusterctl(t, append([]string{"init", "--addon=chandler:" + newerVersion}, flags...)...)
		g := NewWithT(t)
		g.Expect(err).To(HaveOccurred())
		g.Expect(log).To(ContainSubstring(`there is already an instance of the "addon-chandler" provider installed in the "chandler-system" namespace`))
	})

	t.Run("upgrade", func(t *testing.T) {
		g := NewWithT(t)
		hub.removeWebhooks(t)
		g.Expect(hub.Create(t.Context(), stack)).To(Succeed())
		g.Expect(mustRun(t, append([]string{"upgrade", "plan"}, flags...)...)).To(MatchRegexp(
			`addon-chandler +chandler-system +AddonProvider +` + olderVersion + ` +` + newerVersion))
		mustRun(t, append([]string{"upgrade", "apply", "--addon=chandler:" + newerVersion, "--wait-providers", "--wait-provider-timeout=60"}, flags...)...)
		g.Expect(hub.provider(t)).To(HaveField("Version", newerVersion))
		g.Expect(hub.deployments(t)).To(ConsistOf(HaveField("Spec.Template.Spec.Containers", ContainElement(
			HaveField("Image", HaveSuffix(":"+newerVersion))))))
		before := stack.UID
		g.Expect(hub.Get(t.Context(), client.ObjectKeyFromObject(stack), stack)).To(Succeed())
		g.Expect(stack.UID).To(Equal(before), "what people wrote survives an upgrade")
	})

	t.Run("delete", func(t *testing.T) {
		g := NewWithT(t)
		_, log, err := clusterctl(t, append([]string{"delete", "--addon=chandler", "--include-crd"}, flags...)...)
		g.Expect(err).To(HaveOccurred())
		g.Expect(log).To(ContainSubstring("found existing objects for provider CRDs"))

		mustRun(t, append([]string{"delete", "--addon=chandler"}, flags...)...)
		g.Eventually(func() []appsv1.Deployment { return hub.deployments(t) }).WithTimeout(time.Minute).Should(BeEmpty())
		webhooks := &admissionv1.ValidatingWebhookConfigurationList{}
		g.Expect(hub.List(t.Context(), webhooks, ours)).To(Succeed())
		g.Expect(webhooks.Items).To(BeEmpty(), "without a webhook server, nobody could delete a stack")
		policies := &admissionv1.ValidatingAdmissionPolicyList{}
		g.Expect(hub.List(t.Context(), policies, ours)).To(Succeed())
		g.Expect(policies.Items).To(BeEmpty(), "clusterctl deletes all kinds that it doesn't know to be cluster-wide")
		providers := &clusterctlv1.ProviderList{}
		g.Expect(hub.List(t.Context(), providers, ours)).To(Succeed())
		g.Expect(providers.Items).To(BeEmpty())
		g.Expect(hub.crds(t)).NotTo(BeEmpty())
		g.Expect(hub.Get(t.Context(), client.ObjectKeyFromObject(stack), stack)).To(Succeed(), "CRDs, and what people wrote, stay")
	})

	t.Run("init again", func(t *testing.T) {
		g := NewWithT(t)
		mustRun(t, append(initialize, "--addon=chandler:"+newerVersion)...)
		g.Expect(hub.provider(t)).To(HaveField("Version", newerVersion))
		g.Expect(hub.Get(t.Context(), client.ObjectKeyFromObject(stack), stack)).To(Succeed())
	})

	t.Run("delete with CRDs and namespace", func(t *testing.T) {
		g := NewWithT(t)
		hub.removeWebhooks(t)
		g.Expect(hub.Delete(t.Context(), stack)).To(Succeed())
		mustRun(t, append([]string{"delete", "--addon=chandler", "--include-crd", "--include-namespace"}, flags...)...)
		g.Eventually(func() []apiextensionsv1.CustomResourceDefinition { return hub.crds(t) }).WithTimeout(time.Minute).Should(BeEmpty())
		g.Eventually(func() error {
			return hub.Get(t.Context(), client.ObjectKey{Name: systemNamespace}, &corev1.Namespace{})
		}).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("not found")))
	})
}

// variable is one of clusterctl's in a release, with its default.
var variable = regexp.MustCompile(`\$\{(\w+):=([^}]*)\}`)

func components(t *testing.T, version string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository("addon-chandler", version), "addon-components.yaml"))
	must.Succeed(t, err)
	return data
}

// released returns the objects of a version's release, with the defaults of all variables.
func released(t *testing.T, version string) map[string]*unstructured.Unstructured {
	t.Helper()
	return byName(t, variable.ReplaceAll(components(t, version), []byte("$2")))
}

// provider is clusterctl's inventory entry of Chandler.
func (s *server) provider(t *testing.T) *clusterctlv1.Provider {
	t.Helper()
	p := &clusterctlv1.Provider{}
	must.Succeed(t, s.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "addon-chandler"}, p))
	NewWithT(t).Expect(*p).To(And(HaveField("ProviderName", "chandler"), HaveField("Type", "AddonProvider")))
	return p
}

func (s *server) deployments(t *testing.T) []appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	must.Succeed(t, s.List(t.Context(), list, ours))
	return list.Items
}

func (s *server) crds(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	must.Succeed(t, s.List(t.Context(), list, ours))
	return list.Items
}

// removeWebhooks takes away what the API server would ask, since nobody answers.
func (s *server) removeWebhooks(t *testing.T) {
	t.Helper()
	for _, kind := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		must.Succeed(t, s.DeleteAllOf(t.Context(), kind, client.HasLabels{clusterctlv1.ClusterctlLabel}))
	}
}
