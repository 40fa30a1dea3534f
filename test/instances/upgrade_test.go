// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/wait"
)

const stackCRD = "addonstacks.addons.cluster.x-k8s.io"

// TestUpgradeFromV1alpha1 has AddonStacks that were written when there was no other
// version, and upgrades.
func TestUpgradeFromV1alpha1(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	s := workload(t, 2)
	w.createNamespace("team-a")
	w.apply([]*unstructured.Unstructured{crdOfThatTime(t)})
	written := stacksOfThatTime(w.addonNamespace("team-a"))
	for _, stack := range written {
		w.create(stack.DeepCopy())
	}
	NewWithT(t).Expect(w.storedVersions()).To(Equal([]string{"v1alpha1"}), "this is how things were")

	w.installShared(usual.shared)

	for _, was := range written {
		t.Run(was.Name+" is what it was", func(t *testing.T) {
			g := NewWithT(t)
			now := &addonsv1alpha1.AddonStack{}
			g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(was), now)).To(Succeed())
			g.Expect(now.Spec).To(Equal(was.Spec), "v1alpha1 shows what was written")
			g.Expect(now.Labels).To(Equal(was.Labels))
			hub := &addonsv1.AddonStack{}
			g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(was), hub)).To(Succeed())
			g.Expect(hub.Spec.Addons).To(HaveLen(1))
			g.Expect(hub.Spec.Addons[0].Name).To(Equal(was.Spec.ReleaseName), "v1beta1 shows it as an add-on")
			g.Expect(hub.Spec.ClusterSelector).To(Equal(was.Spec.ClusterSelector))
			g.Expect(string(hub.Spec.DeletionPolicy)).To(Equal(string(was.Spec.DeletionPolicy)))
		})
	}

	t.Run("what is stored is migrated", func(t *testing.T) {
		w := w.in(t)
		wait.Until(t, patience, "the webhooks have everything stored in the newest version", func() error {
			if stored := w.storedVersions(); !slices.Equal(stored, []string{"v1beta1"}) {
				return fmt.Errorf("status.storedVersions is %v", stored)
			}
			return nil
		})
	})

	t.Run("it is edited in both versions", func(t *testing.T) {
		g := NewWithT(t)
		key := client.ObjectKey{Namespace: "team-a", Name: "full"}
		hub := &addonsv1.AddonStack{}
		g.Expect(w.Get(t.Context(), key, hub)).To(Succeed())
		hub.Spec.DeletionPolicy = addonsv1.DeletionPolicyDelete
		hub.Spec.Addons[0].Values = valuesOf(map[string]any{"text": "only v1beta1 has values"})
		hub.Spec.Addons = append(hub.Spec.Addons, settings("second", "default", "two"))
		hub.Spec.Addons[1].DependsOn = []string{hub.Spec.Addons[0].Name}
		g.Expect(w.Update(t.Context(), hub)).To(Succeed())

		spoke := &addonsv1alpha1.AddonStack{}
		g.Expect(w.Get(t.Context(), key, spoke)).To(Succeed())
		g.Expect(spoke.Spec.DeletionPolicy).To(Equal(addonsv1alpha1.DeletionPolicyDelete), "v1alpha1 shows the edit")
		spoke.Spec.Version = "2.0.0"
		g.Expect(w.Update(t.Context(), spoke)).To(Succeed())

		after := &addonsv1.AddonStack{}
		g.Expect(w.Get(t.Context(), key, after)).To(Succeed())
		wanted := hub.Spec.DeepCopy()
		wanted.Addons[0].Chart.Version = "2.0.0"
		g.Expect(after.Spec).To(Equal(*wanted), "v1beta1 shows that edit, and has lost nothing of what v1alpha1 can't hold")
	})

	t.Run("what is wrong is refused in both versions", func(t *testing.T) {
		g := NewWithT(t)
		spoke := &addonsv1alpha1.AddonStack{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "small"}, spoke)).To(Succeed())
		spoke.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is"}}
		g.Expect(w.Update(t.Context(), spoke)).To(MatchError(ContainSubstring("spec.clusterSelector")), "the webhook sees both")
	})

	t.Run("it is served", func(t *testing.T) {
		w := w.in(t)
		g := NewWithT(t)
		w.startInstance(overlay{name: "one", namespaces: []string{"team-a"}})
		g.Expect(w.makeCluster(t.Context(), "team-a", "veteran", s, map[string]string{"env": "prod"})).To(Succeed())
		w.awaitInstalled(s, "team-a", "small", "from veteran/none")
		wait.Until(t, patience, "v1alpha1 shows the status, too", func() error {
			spoke := &addonsv1alpha1.AddonStack{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "small"}, spoke); err != nil {
				return err
			}
			if c := spoke.Status.Clusters; c == nil || c.Matching != 1 || c.Ready != 1 {
				return fmt.Errorf("%+v", spoke.Status)
			}
			return nil
		})
		table := w.kubectlGet(t, "addonstacks.v1alpha1.addons.cluster.x-k8s.io", "-n", "team-a", "small")
		g.Expect(table[0]).To(ContainElements("CHART", "VERSION", "CLUSTERS", "READY"))
	})
}

// crdOfThatTime is that of AddonStacks before there was v1beta1: the same schema of
// v1alpha1, which was stored, and nothing to convert.
func crdOfThatTime(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	for _, crd := range find[apiextensionsv1.CustomResourceDefinition](t, build(t, shared.root+"/config/crd"), "CustomResourceDefinition") {
		if crd.Name != stackCRD {
			continue
		}
		crd.Spec.Conversion = nil
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != "v1alpha1" })
		if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Storage {
			t.Fatalf("CRD %s: v1alpha1 isn't served beside a newer version", crd.Name)
		}
		crd.Spec.Versions[0].Storage = true
		crd.Spec.Versions[0].Deprecated = false
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			t.Fatal(err)
		}
		delete(content, "status")
		return &unstructured.Unstructured{Object: content}
	}
	t.Fatalf("config/crd has no CRD %s", stackCRD)
	return nil
}

// stacksOfThatTime are AddonStacks with few fields, and with all.
func stacksOfThatTime(namespace string) []*addonsv1alpha1.AddonStack {
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	nowhere := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "nowhere"}}
	return []*addonsv1alpha1.AddonStack{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "small"},
			Spec: addonsv1alpha1.AddonStackSpec{
				ClusterSelector: prod, ReleaseName: "small", ReleaseNamespace: namespace,
				ChartLocation:  addonsv1alpha1.ChartLocation{ChartFrom: &addonsv1alpha1.ChartSource{Path: chartFile}},
				ValuesTemplate: "text: from {{ .Cluster.metadata.name }}\n",
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "full", Labels: map[string]string{"team": "a"}},
			Spec: addonsv1alpha1.AddonStackSpec{
				ClusterSelector: nowhere, ClassNames: []string{"small", "large"}, ReleaseName: "full", ReleaseNamespace: namespace,
				ChartLocation: addonsv1alpha1.ChartLocation{
					RepoURL: "oci://registry.example.org/charts", ChartName: "settings", Version: "1.0.0", PlainHTTP: ptr.To(false),
					Credentials: &addonsv1alpha1.Credentials{Secret: addonsv1alpha1.SecretReference{Name: "pull"}},
				},
				ValuesTemplate: "text: {{ .Cluster.metadata.labels.absent }}\n", ValuesTemplateMode: addonsv1alpha1.ValuesTemplateModeStrict,
				Options: addonsv1alpha1.HelmOptions{
					Timeout: &metav1.Duration{Duration: 90_000_000_000}, TakeOwnership: ptr.To(true),
					Install: addonsv1alpha1.InstallOptions{CreateNamespace: ptr.To(false)},
				},
				DeletionPolicy: addonsv1alpha1.DeletionPolicyOrphan,
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "lenient"},
			Spec: addonsv1alpha1.AddonStackSpec{
				ClusterSelector: nowhere, ReleaseName: "lenient",
				ChartLocation:  addonsv1alpha1.ChartLocation{RepoURL: "https://charts.example.org/stable", ChartName: "settings", Version: "1.0.0"},
				ValuesTemplate: "text: {{ .Cluster.metadata.labels.absent }}\n",
			},
		},
	}
}

func (w *world) storedVersions() []string {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: stackCRD}, crd); err != nil {
		w.t.Fatal(err)
	}
	return crd.Status.StoredVersions
}
