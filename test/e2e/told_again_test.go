// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestInvalidIsToldOnce has a bundle that is none, and a chart that is none, of a
// registry. It restarts the manager while the registry is slow. Both stay what they are,
// and nothing of that is news.
func TestInvalidIsToldOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials := trusting(t, authority.PEM)
	origin.Push(t, configMapChart.archive("settings", "1.0.0"), "bundles/chart", "1.0.0")
	origin.PushArchive(t, tarball(map[string]string{"x/README.md": "no chart"}), "charts/none", "1.0.0")
	host := faulty.Start(t, authority, inFrontOf(origin.Host))
	tn.makeCluster("c", workloadServer(t, 0), labels("env=prod"))
	tn.startManager("--credentials-dir=" + credentials)

	tn.makeStack("chart", labels("env=prod"), tn.addon("settings", "", fromOCI("oci://"+host.Host+"/charts/none", "1.0.0")))
	bundle := tn.newStack("bundle", labels("env=none"))
	bundle.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: "oci://" + host.Host + "/bundles/chart"}, Version: "1.0.0"}}
	tn.create(bundle)
	hasFailed := phase("settings", addonsv1.AddonFailed, "ArtifactInvalid", "")
	isInvalid := func(s *addonsv1.AddonStack) error {
		return checkCondition(s, addonsv1.ValidCondition, metav1.ConditionFalse, "ArtifactInvalid", "")
	}
	tn.awaitCluster("c", "its chart is none", hasFailed)
	since := conditions.GetLastTransitionTime(tn.awaitStatus("bundle", "it is a chart", isInvalid), addonsv1.ValidCondition)
	of := func() []int {
		return []int{tn.warningsOf("ClusterAddon", "ArtifactInvalid"), tn.warningsOf("AddonStack", "ArtifactInvalid")}
	}
	g.Eventually(of, patience).Should(Equal([]int{1, 2}), "the add-on, and both stacks")

	tn.stopManager()
	host.Fail(faulty.Silent)
	tn.startManager("--credentials-dir=" + credentials)
	tn.awaitReconcile("clusteraddon", 1)
	tn.awaitCluster("c", "its registry is slow, and nobody knows better yet", hasFailed)
	tn.awaitReconcile("addonstack", 1)
	tn.awaitStatus("bundle", "nobody knows better yet", isInvalid)
	host.Heal()
	tn.awaitCluster("c", "its chart is none still", hasFailed)
	tn.settle()
	still := tn.awaitStatus("bundle", "it is a chart still", isInvalid)
	g.Expect(conditions.GetLastTransitionTime(still, addonsv1.ValidCondition)).To(Equal(since), "it never was valid")
	g.Expect(of()).To(Equal([]int{1, 2}), "%q", tn.warnings())
}
