// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/wait"
)

const stackCRD = "addonstacks.addons.cluster.x-k8s.io"

// TestOlderVersion has an AddonStack written in v1alpha1 while the overlays' webhooks convert, and an instance serve it.
func TestOlderVersion(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	w := newWorld(t, worldOptions{})
	s := workload(t, 2)
	w.createNamespace("team-a")
	w.installShared(usual.shared)

	written := &addonsv1alpha1.AddonStack{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "platform"},
		Spec: addonsv1alpha1.AddonStackSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			Addons:          []addonsv1.Addon{settings("small", w.addonNamespace("team-a"), "one")},
			Removals:        addonsv1alpha1.Removals{Limit: ptr.To(intstr.FromString("20%"))},
		},
	}
	key := client.ObjectKeyFromObject(written)
	w.create(written.DeepCopy())

	g := NewWithT(t)
	hub := &addonsv1.AddonStack{}
	g.Expect(w.Get(t.Context(), key, hub)).To(Succeed())
	g.Expect(hub.Spec.RemovalLimit).To(Equal(written.Spec.Removals.Limit), "v1beta1 has another name for it")
	written.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is"}}
	written.ResourceVersion = hub.ResourceVersion
	g.Expect(w.Update(t.Context(), written)).To(MatchError(ContainSubstring("spec.clusterSelector")), "the webhook sees both versions")

	t.Run("it is served", func(t *testing.T) {
		w := w.in(t)
		g := NewWithT(t)
		w.startInstance(overlay{name: "one", namespaces: []string{"team-a"}})
		g.Expect(w.makeCluster(t.Context(), "team-a", "veteran", s, map[string]string{"env": "prod"})).To(Succeed())
		w.awaitInstalled(s, "team-a", "small", "one/none")
		wait.Until(t, patience, "v1alpha1 shows the status, too", func() error {
			spoke := &addonsv1alpha1.AddonStack{}
			if err := w.Get(t.Context(), key, spoke); err != nil {
				return err
			}
			if c := spoke.Status.Clusters; c == nil || c.Total != 1 || c.Ready != 1 {
				return fmt.Errorf("%+v", spoke.Status)
			}
			return nil
		})
		table := w.kubectlGet(t, "addonstacks.v1alpha1.addons.cluster.x-k8s.io", "-n", "team-a", "platform")
		g.Expect(table[0]).To(ContainElements("CLUSTERS", "READY"))
	})

	t.Run("it is stored in the newest version alone", func(t *testing.T) {
		g := NewWithT(t)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Name: stackCRD}, crd)).To(Succeed())
		g.Expect(crd.Status.StoredVersions).To(Equal([]string{addonsv1.GroupVersion.Version}), "so a later release can drop the older one")
	})
}
