// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/targz"
	"github.com/cluster-chandler/chandler/test/topology"
)

// releaseNamespace is where the add-ons of releases go to.
const releaseNamespace = "kube-system"

// ofRelease makes a class, and a stack for it with the release in a directory below the tenant's artifacts.
func (tn *tenant) ofRelease(class, dir string) {
	tn.Helper()
	g := NewWithT(tn.T)
	g.Expect(createClass(tn.Context(), topology.Class{Namespace: tn.namespace, Name: class})).To(Succeed())
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name, s.Spec.ClassNames = tn.namespace, class, []string{class}
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: dir}}
	g.Expect(world.Create(tn.Context(), s)).To(Succeed())
}

// TestPublishedReleases upgrades a Cluster from one published release to the next, with its class and its Kubernetes at once.
func TestPublishedReleases(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const name, one, two, before, after = "c", "docker-scs-1-31-v1", "docker-scs-1-31-v2", "v1.31.6", "v1.31.7"
	data := map[string]string{one: realdata.Path(t, "cluster-stacks", one), two: realdata.Path(t, "cluster-stacks", two)}
	g := NewWithT(t)
	tn := newTenant(t, "published")
	for class, from := range data {
		g.Expect(os.CopyFS(filepath.Join(tn.artifacts, class), os.DirFS(from))).To(Succeed())
		tn.ofRelease(class, class)
	}
	createCluster(t, tn.at(name), one, before, 1) // with a second node, for Cilium's operator
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	tn.await(name, "its release is installed", isReadyWith("cni", "metrics-server"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

	since := tn.mark(name)
	setClass(t, tn.at(name), two, after)
	awaitState(t, tn.at(name), state{controlPlane: after, runs: after, workers: after})
	tn.await(name, "the upgrade is done", isDone)
	tn.await(name, "it has the next release", isReadyWith("cni", "metrics-server"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
	network := since.workloadWrites("daemonsets", "cilium")
	g.Expect(network).NotTo(BeEmpty(), "Cilium is another one")
	g.Expect(network[len(network)-1].answered()).To(BeTemporally("<", since.controlPlane(after).begun()), "the network came before the control plane")
}

// isReadyWith expects exactly these add-ons, and them to be ready.
func isReadyWith(names ...string) func(*addonsv1.ClusterAddon) error {
	return func(ca *addonsv1.ClusterAddon) error {
		var all []string
		for _, s := range ca.Status.Addons {
			all = append(all, s.Name)
		}
		if matched, err := ConsistOf(names).Match(all); err != nil || !matched {
			return fmt.Errorf("there are %v, not %v", all, names)
		}
		return isReady(ca)
	}
}

// stages is a release with all stages that mean something. The pre-flight check waits for a ConfigMap.
const stages = `addonStages:
  AfterControlPlaneInitialized:
  - {name: cni, action: apply}
  - {name: ccm, action: apply}
  - {name: scaler, action: apply}
  - {name: ingress, action: apply}
  BeforeClusterUpgrade:
  - name: preflight
    action: apply
    waitForPostCondition:
      objects: [{key: checked, apiVersion: v1, kind: ConfigMap, name: checked, namespace: default}]
      conditions: %s
  - {name: cni, action: apply}
  - {name: preflight, action: delete}
  AfterControlPlaneUpgrade:
  - {name: ccm, action: apply}
  AfterClusterUpgrade:
  - {name: scaler, action: apply}
  BeforeClusterDelete:
  - {name: ingress, action: delete}
`

// writeRelease writes one whose add-ons are ConfigMaps with a text.
func (tn *tenant) writeRelease(dir, condition, text string) {
	tn.Helper()
	g := NewWithT(tn.T)
	var charts []targz.Entry
	for _, chart := range []string{"preflight", "cni", "ccm", "scaler", "ingress"} {
		charts = append(charts,
			targz.Entry{Name: chart + "/Chart.yaml", Data: fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 1.0.0\n", chart)},
			targz.Entry{Name: chart + "/templates/text.yaml", Data: fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {text: %s}\n", chart, text)})
	}
	g.Expect(os.MkdirAll(filepath.Join(tn.artifacts, dir), 0o755)).To(Succeed())
	for name, data := range map[string][]byte{
		"metadata.yaml":                        []byte("versions: {clusterStack: v1, kubernetes: v1.35.0, components: {clusterAddon: v1}}\n"),
		"clusteraddon.yaml":                    fmt.Appendf(nil, stages, condition),
		"test-stack-1-35-cluster-addon-v1.tgz": targz.Of(tn.T, charts...),
	} {
		g.Expect(os.WriteFile(filepath.Join(tn.artifacts, dir, name), data, 0o644)).To(Succeed())
	}
}

// TestReleaseWithAllStages upgrades a Cluster with its class, first to one whose release is faulty, and then to a good one of
// the same Kubernetes. In the middle the instance is killed, and what it wrote of the upgrade is lost. The Cluster Stack
// Operator got stuck on each of these.
func TestReleaseWithAllStages(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t, "releases", "--instance-heartbeat=4s")
	const name, first, faulty, second = "c", "first", "faulty", "second"
	for class, condition := range map[string]string{first: `checked.data.ok == "yes"`, faulty: `checked.data.ok ==`, second: `checked.data.ok == "yes"`} {
		tn.writeRelease(class, condition, class)
		tn.ofRelease(class, class)
	}
	createCluster(t, tn.at(name), first, v34, 1)
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	tn.await(name, "its release is installed", isReadyWith("cni", "ccm", "scaler", "ingress"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

	since := tn.mark(name)
	setClass(t, tn.at(name), faulty, v35)
	tn.await(name, "nobody knows what it is to have", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeStackUndecidedReason, "AddonStack faulty"))
	setClass(t, tn.at(name), second, v35)
	tn.await(name, "a check comes first", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on preflight"))
	tn.chandler.Kill()
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: tn.namespace, Name: name}}
	g.Expect(world.Status().Patch(t.Context(), ca, client.RawPatch(types.MergePatchType, []byte(`{"status": {"upgrade": null, "conditions": null}}`)))).To(Succeed())
	tn.chandler.Launch()
	tn.await(name, "it still comes first", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on preflight"))
	expectState(t, tn.at(name), state{controlPlane: v34, runs: v34, workers: v34})

	workload := world.Provider.Workload(key(tn.at(name)))
	checked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "checked"}, Data: map[string]string{"ok": "yes"}}
	g.Expect(workload.Create(t.Context(), checked)).To(Succeed())
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35, workers: v35})
	tn.await(name, "the upgrade is done", isDone)
	tn.await(name, "the check is gone", isReadyWith("cni", "ccm", "scaler", "ingress"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

	text := func(addon string) *written {
		return since.first(since.workloadWrites("configmaps", addon), second, "data", "text")
	}
	controlPlane := since.controlPlane(v35)
	g.Expect(text("preflight").begun()).To(BeTemporally("<", text("cni").begun()), "the check comes before the network")
	g.Expect(text("cni").answered()).To(BeTemporally("<", controlPlane.begun()))
	runs := since.first(since.hubWrites("localcontrolplanes", "status"), v35, "status", "version")
	g.Expect(runs.begun()).To(BeTemporally("<", text("ccm").begun()))
	workers := since.first(since.hubWrites("machinedeployments", ""), v35, "spec", "template", "spec", "version")
	g.Expect(workers.answered()).To(BeTemporally("<", text("scaler").begun()))

	tn.deleteHeld(name, "ingress", releaseNamespace)
}

// deleteHeld deletes a Cluster, one of whose add-ons a finalizer keeps for a while.
func (tn *tenant) deleteHeld(cluster, addon, in string) {
	tn.Helper()
	t, g := tn.T, NewWithT(tn.T)
	workload := world.Provider.Workload(key(tn.at(cluster)))
	tn.finalize(cluster, addon, in, "example.org/load-balancer")
	deleteCluster(t, tn.at(cluster))
	until(t, addon+" is to be deleted", func() error {
		cm := &corev1.ConfigMap{}
		if err := workload.Get(t.Context(), client.ObjectKey{Namespace: in, Name: addon}, cm); err != nil {
			return err
		}
		if cm.DeletionTimestamp.IsZero() {
			return errors.New("it is there")
		}
		return nil
	})
	g.Expect(world.Get(t.Context(), key(tn.at(cluster)), &clusterv1.Cluster{})).To(Succeed())
	tn.finalize(cluster, addon, in)
	awaitGone(t, tn.at(cluster))
}

// finalize gives an add-on's ConfigMap these finalizers and no others.
func (tn *tenant) finalize(cluster, addon, in string, finalizers ...string) {
	tn.Helper()
	g := NewWithT(tn.T)
	workload, cm := world.Provider.Workload(key(tn.at(cluster))), &corev1.ConfigMap{}
	g.Expect(workload.Get(tn.Context(), client.ObjectKey{Namespace: in, Name: addon}, cm)).To(Succeed())
	before := cm.DeepCopy()
	cm.Finalizers = finalizers
	g.Expect(workload.Patch(tn.Context(), cm, client.MergeFrom(before))).To(Succeed())
}
