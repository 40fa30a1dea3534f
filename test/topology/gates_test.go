// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// TestUpgradeWithAddons upgrades a Cluster and its add-ons, each at its point: Cluster API waits for them, and they for it.
func TestUpgradeWithAddons(t *testing.T) {
	t.Parallel()
	tn := newTenant(t, "gated")
	const name = "c"
	stack := func(network, others string) *addonsv1.AddonStack {
		cni, preflight := tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, network), tn.addon("preflight", "", "first")
		cni.DependsOn, preflight.Lifecycle.Present = []string{"preflight"}, addonsv1.PresentBeforeUpgrade
		return tn.stack(cni, preflight, tn.addon("ccm", addonsv1.UpgradeAfterControlPlane, others), tn.addon("autoscaler", addonsv1.UpgradeAfterWorkers, others))
	}
	createCluster(t, tn.at(name), "real", world.older, 1)
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	tn.set(stack("first", "first"))
	for _, addon := range []string{"cni", "ccm", "autoscaler"} {
		tn.ready(name, addon, "first")
	}
	tn.await(name, "all is installed", isReady)
	tn.await(name, "no upgrade is in sight", isDone)
	tn.expectNone(name, "preflight")

	since := tn.mark(name)
	setVersion(t, tn.at(name), world.newer)
	tn.await(name, "a check comes first", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on preflight"))
	tn.set(stack("second", "first"))
	tn.await(name, "the network waits for the check", waiting("cni", "WaitingForDependency"))
	tn.ready(name, "preflight", "first")
	const notReady = "add-on cni of AddonStack platform isn't ready"
	tn.await(name, "the network isn't ready", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, notReady))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, notReady)
	tn.set(stack("second", "second"))
	tn.await(name, "it comes after the control plane", waiting("ccm", "WaitingForControlPlane"))
	tn.await(name, "it comes after the workers", waiting("autoscaler", "WaitingForWorkers"))
	expectState(t, tn.at(name), state{controlPlane: world.older, runs: world.older, workers: world.older})

	tn.forge(name)

	tn.ready(name, "cni", "second")
	awaitState(t, tn.at(name), state{controlPlane: world.newer, runs: world.newer, workers: world.older})
	tn.await(name, "the cloud controller isn't ready", held(addonsv1.UpgradeAfterControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on ccm"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "add-on ccm of AddonStack platform isn't ready")
	expectState(t, tn.at(name), state{controlPlane: world.newer, runs: world.newer, workers: world.older})
	tn.expectText(name, "autoscaler", "first")
	tn.expectNone(name, "preflight")

	tn.ready(name, "ccm", "second")
	awaitState(t, tn.at(name), state{controlPlane: world.newer, runs: world.newer, workers: world.newer})
	tn.await(name, "the autoscaler isn't ready", held(addonsv1.UpgradeAfterWorkers, addonsv1.UpgradeAddonsNotReadyReason, "add-on autoscaler"))
	tn.ready(name, "autoscaler", "second")
	tn.await(name, "the upgrade is done", isDone)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
	since.expectOrder(world.newer, "second", "cni", "ccm", "autoscaler")
}

// TestClosedGate has an add-on that isn't for the next version of Kubernetes: by its range, by what its chart says, or as no
// row of chart.versions is for it. A corrected stack, or the annotation, lets the upgrade go on.
func TestClosedGate(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t, "closed")
	const corrected, forced = "corrected", "forced"
	stack := func(versions string, others ...addonsv1.Addon) *addonsv1.AddonStack {
		cni := tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "first")
		cni.Lifecycle.KubernetesVersions = versions
		return tn.stack(append(others, cni)...)
	}
	olderMinor, newerMinor := minorOf(world.older)+".x", minorOf(world.newer)+".x"
	charts := registry.Start(t, registry.Options{PlainHTTP: true})
	charts.Push(t, targz.Chart(t, targz.Entry{Name: "demo/templates/empty.yaml"}), "charts/demo", "1.0.0")
	byRow := func(kubernetes ...string) addonsv1.Addon {
		a := addonsv1.Addon{Name: "rows", Namespace: tn.namespace, Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: charts.URL("charts/demo"), PlainHTTP: ptr.To(true)}}}
		for _, k := range kubernetes {
			a.Chart.Versions = append(a.Chart.Versions, addonsv1.ChartVersion{Kubernetes: k, Version: "1.0.0"})
		}
		return a
	}
	byChart := func(path string) addonsv1.Addon {
		return addonsv1.Addon{Name: "old", Namespace: tn.namespace, Chart: addonsv1.ChartSource{Path: path}}
	}
	tn.write("old/Chart.yaml", "apiVersion: v2\nname: old\nversion: 1.0.0\nkubeVersion: '<"+minorOf(world.newer)+".0-0'\n")
	tn.write("old/templates/empty.yaml", "")
	for _, name := range []string{corrected, forced} {
		createCluster(t, tn.at(name), "real", world.older, 0)
	}
	tn.set(stack("<=" + world.older))
	for _, name := range []string{corrected, forced} {
		awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
		tn.ready(name, "cni", "first")
		tn.await(name, "it is for what runs", isReady)
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
		setVersion(t, tn.at(name), world.newer)
	}
	for _, name := range []string{corrected, forced} {
		tn.await(name, "it isn't for what is next", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeNoCompatibleVersionReason, "add-on cni of AddonStack platform"))
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "lifecycle.kubernetesVersions <="+world.older)
		expectState(t, tn.at(name), state{controlPlane: world.older, runs: world.older})
	}
	tn.expectQuiet(forced)
	annotate(t, tn.at(forced), addonsv1.SkipGatesAnnotation, world.older)
	tn.await(forced, "that is for another version", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeNoCompatibleVersionReason, "cni"))
	annotate(t, tn.at(forced), addonsv1.SkipGatesAnnotation, world.newer)
	awaitState(t, tn.at(forced), state{controlPlane: world.newer, runs: world.newer})
	expectState(t, tn.at(corrected), state{controlPlane: world.older, runs: world.older})
	for _, wrong := range []addonsv1.Addon{byChart("old"), byRow(olderMinor)} {
		is, with := fmt.Sprintf("add-on %s of AddonStack platform", wrong.Name), stack("<="+world.newer, wrong)
		with.Spec.RemovalLimit = ptr.To(intstr.FromString("100%")) // the one before goes from both Clusters
		tn.set(with)
		tn.await(corrected, is, held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeNoCompatibleVersionReason, is))
		awaitCondition(t, tn.at(corrected), clusterv1.ClusterTopologyReconciledCondition, false, is)
		expectState(t, tn.at(corrected), state{controlPlane: world.older, runs: world.older})
	}
	tn.set(stack("<="+world.newer, byRow(olderMinor, newerMinor), byChart("demo")))
	awaitState(t, tn.at(corrected), state{controlPlane: world.newer, runs: world.newer})
	for _, name := range []string{corrected, forced} {
		tn.await(name, "the upgrade is done", isDone)
	}
}

// minorOf returns a version without its patch and "v".
func minorOf(v string) string {
	parsed := version.MustParseSemantic(v)
	return fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
}

// TestClosedInTheMiddle has an add-on that isn't for a version on the way, but for the one at its end.
func TestClosedInTheMiddle(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t, "middle")
	const name = "c"
	stack := func(versions string) *addonsv1.AddonStack {
		cni := tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "first")
		cni.Lifecycle.KubernetesVersions = versions
		return tn.stack(cni)
	}
	tn.set(stack("1.34.x || 1.36.x"))
	createCluster(t, tn.at(name), localClass, v34, 0)
	tn.awaitFirst(name)
	setVersion(t, tn.at(name), v36)
	const isnt = "Kubernetes 1.35 isn't allowed by add-on cni of AddonStack platform"
	tn.await(name, "it isn't for what is between", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeNoCompatibleVersionReason, isnt))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, isnt)
	expectState(t, tn.at(name), state{controlPlane: v34, runs: v34})
	tn.set(stack("*"))
	awaitState(t, tn.at(name), state{controlPlane: v36, runs: v36})
	tn.await(name, "the upgrade is done", isDone)
}
