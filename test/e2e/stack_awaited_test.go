// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	chandler "github.com/cluster-chandler/chandler/test/manager"
)

// TestAwaitedStack switches a cluster to a stack that has no revision yet: what runs
// stays until there is one.
func TestAwaitedStack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	addon := tn.namespace + "-a"
	archive := tarball(map[string]string{
		"net/Chart.yaml": "apiVersion: v2\nname: net\nversion: 2.0.0\n", "net/templates/one.yaml": configMap("one", "next"),
	})
	first := tn.stackForClass("first", "first", tn.addon(addon, tn.writeChart("net", "1.0.0", having("one"))), tn.addon("more", tn.writeChart("more", "1.0.0", having("two"))))
	tn.create(first)
	later := tn.stackForClass("later", "later", tn.addon(addon, "net"))
	later.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle"}}}
	tn.create(later)
	down := tn.stackForClass("down", "down")
	down.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: "oci://" + chandler.FreeAddress(t) + "/stack", PlainHTTP: ptr.To(true)}, Version: "v1"}}
	tn.create(down)
	tn.makeStack("other", nil, tn.addon("other", tn.writeChart("other", "1.0.0", having("four"))))
	tn.makeCluster("prod", s, nil, ofClass("first"))
	tn.startManager()
	tn.awaitCluster("prod", "it is of the first class", ready(addon, "more", "other"))
	tn.settle()
	before := uidsOf(tn.configMapsOn(s))
	deletions, start := tn.watchDeletions(s), s.mark(t)

	for _, class := range []string{"down", "later"} {
		tn.switchClass("prod", class)
		tn.awaitCluster("prod", "its stack has no revision", assigned(class, "other"),
			phase("more", addonsv1.AddonUnassigned, "StackUndecided", "AddonStack "+class),
			phase(addon, addonsv1.AddonUnassigned, "StackUndecided", "AddonStack "+class),
			phase("other", addonsv1.AddonReady, "", ""),
			condition(addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.AddonsProgressingReason, "AddonStack "+class+" has no valid revision"))
		tn.poke("prod", class)
		tn.settle()
		tn.switchClass("prod", "first")
		tn.awaitCluster("prod", "it is back", assigned("first", "other"), ready(addon, "more", "other"))
	}
	tn.settle()
	tn.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "there and back nothing is written")

	tn.switchClass("prod", "later")
	tn.awaitCluster("prod", "its stack has no revision", phase("more", addonsv1.AddonUnassigned, "StackUndecided", "AddonStack later"))
	bundle := &corev1.ConfigMap{ObjectMeta: tn.named("bundle"), BinaryData: map[string][]byte{addonsv1.DefaultArtifactKey: archive}}
	tn.create(bundle)
	tn.awaitCluster("prod", "the bundle is there", ready(addon, "other"), installedAs(addon, 2, "2.0.0"))
	tn.settle()
	tn.Expect(deletions()).To(Equal([]string{"two"}), "what the next one doesn't have goes only now")
	tn.Expect(tn.configMapsOn(s)["one"].UID).To(Equal(before["one"]))
}

// TestAwaitedSpec widens a stack to another class, with a source that can't be read,
// and switches a cluster to that class.
func TestAwaitedSpec(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	path := tn.writeChart("net", "1.0.0", having("one"))
	tn.create(tn.stackForClass("platform", "live", tn.addon("net", path)))
	tn.makeCluster("prod", s, nil, ofClass("live"))
	tn.startManager()
	tn.awaitCluster("prod", "it is of class live", ready("net"))
	tn.awaitReady("platform", "all is ready")
	runs := tn.awaitCluster("prod", "it runs a revision", ready("net")).Spec.Stacks
	before := uidsOf(tn.configMapsOn(s))
	deletions := tn.watchDeletions(s)

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.ClassNames = []string{"live", "live2"}
		spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle"}}}
		spec.Addons[0].Chart.Path = "net"
	})
	tn.awaitStack("platform", "it waits", addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "ArtifactNotFound", "")
	tn.settle()
	tn.switchClass("prod", "live2")
	ca := tn.awaitCluster("prod", "only the spec as it is written selects it",
		phase("net", addonsv1.AddonUnassigned, "StackUndecided", "AddonStack platform"),
		condition(addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.AddonsProgressingReason, "AddonStack platform"))
	tn.Expect(ca.Spec.Stacks).To(Equal(runs), "the assignment stays")
	tn.Expect(statusOf(ca, "net").Message).To(ContainSubstring("isn't in force yet"))

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Source, spec.Addons[0].Chart.Path = nil, path
	})
	tn.awaitCluster("prod", "the spec is in force", ready("net"))
	tn.Expect(deletions()).To(BeEmpty())
	tn.Expect(uidsOf(tn.configMapsOn(s))).To(Equal(before))

	tn.switchClass("prod", "none")
	tn.awaitCluster("prod", "no spec selects it", ready())
}

// assigned expects a ClusterAddon to have these stacks, and no others.
func assigned(names ...string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		var got []string
		for _, s := range ca.Spec.Stacks {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, names) {
			return fmt.Errorf("the stacks are %v, expected %v", got, names)
		}
		return nil
	}
}
