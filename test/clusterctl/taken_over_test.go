// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestTwoManagementClustersDoNotFight restores a Cluster from a backup while the management
// cluster that it had lives on. The later one has the release; the other one says so.
func TestTwoManagementClustersDoNotFight(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tm := newTeam(t)
	settings := func(text string) addonsv1.Addon {
		return addonsv1.Addon{Name: "settings", Namespace: tm.namespace, Chart: addonsv1.ChartSource{Path: "settings"},
			Values: valuesOf(map[string]any{"text": text, "region": "eu-1"})}
	}
	tm.makeCluster(tm.here)
	tm.create(tm.here, newStack(tm.namespace, settings("new")))
	here, there := tm.run(tm.here), tm.run(tm.there)
	tm.await(tm.here, "it is installed", ready("settings"))
	here.AwaitRest()

	tm.makeCluster(tm.there)
	tm.create(tm.there, newStack(tm.namespace, settings("of the backup")))
	tm.await(tm.there, "it continues with what is there", ready("settings"))
	tm.await(tm.here, "it sees that another one took over", takenOver)
	here.AwaitRest()
	there.AwaitRest()
	g.Expect(tm.releases()).To(Equal(map[string]string{"settings/1": "superseded", "settings/2": "deployed"}))

	ca := &addonsv1.ClusterAddon{ObjectMeta: tm.named(clusterName)}
	g.Expect(tm.here.Delete(t.Context(), ca)).To(Succeed())
	tm.await(tm.here, "it takes the release back, as it is told to", ready("settings"))
	tm.await(tm.there, "now this one sees it", takenOver)
	g.Expect(tm.releases()).To(HaveLen(3))
}

func takenOver(ca *addonsv1.ClusterAddon) error {
	for _, a := range ca.Status.Addons {
		if a.Phase == addonsv1.AddonFailed && a.Reason == "ReleaseTakenOver" {
			return nil
		}
	}
	return fmt.Errorf("add-ons are %v", ca.Status.Addons)
}

// TestTwoOwners restores a namespace from a backup on another management cluster, while the first one continues.
func TestTwoOwners(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	g, tm := NewWithT(t), newTeam(t)
	tm.makeCluster(tm.here)
	tm.makeStack(tm.here)
	here, there := tm.run(tm.here), tm.run(tm.there)
	all := ready("settings", "vault", "web")
	tm.await(tm.here, "all is installed", all)
	directory := t.TempDir()
	mustRun(t, "move", "--kubeconfig="+tm.here.kubeconfig, "--to-directory="+directory, "--namespace="+tm.namespace)
	mustRun(t, "move", "--to-kubeconfig="+tm.there.kubeconfig, "--from-directory="+directory)
	tm.reportProvisioned(tm.there)
	tm.await(tm.there, "both have it", all)
	here.AwaitRest()
	there.AwaitRest()

	start := time.Now()
	for n := 2; n <= 5; n++ { // more than the history keeps
		tm.changeStack(tm.there, func(spec *addonsv1.AddonStackSpec) {
			spec.Addons[0].Values = valuesOf(map[string]any{"text": fmt.Sprintf("change %d", n)})
			spec.Addons[0].HistoryLimit = ptr.To(int32(2))
			spec.Addons[0].DataPolicy = addonsv1.DataPolicyDelete
		})
		g.Eventually(tm.releases).WithTimeout(patience).Should(HaveKeyWithValue(fmt.Sprintf("settings/%d", n), "deployed"))
		tm.await(tm.here, "the first one is told", phase("settings", addonsv1.AddonFailed, "taken over"))
		here.AwaitRest()
		there.AwaitRest()
		g.Expect(tm.releases()).To(HaveKeyWithValue(fmt.Sprintf("settings/%d", n), "deployed"))
		g.Expect(tm.releases()).NotTo(HaveKey(fmt.Sprintf("settings/%d", n+1)))
		if n == 3 {
			here.Stop(t)
			here = tm.run(tm.here)
		}
	}
	requests := by(tm.version(tm.here), tm.workload.requests(t, tm.user(), start))
	g.Expect(requests).NotTo(BeEmpty())
	g.Expect(writes(requests)).To(BeEmpty(), "the first one changes nothing more, not even what the record says")
}

// TestDirectory keeps a namespace in a directory, and restores it on another management cluster after the first one
// was lost.
func TestDirectory(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tm := newTeam(t)
	tm.makeCluster(tm.here)
	tm.makeStack(tm.here)
	here, there := tm.run(tm.here), tm.run(tm.there)
	all := ready("settings", "vault", "web")
	tm.await(tm.here, "all is installed", all)
	here.AwaitRest()
	installed, start := tm.releases(), time.Now()
	directory := t.TempDir()

	mustRun(t, "move", "--kubeconfig="+tm.here.kubeconfig, "--to-directory="+directory, "--namespace="+tm.namespace)
	tm.await(tm.here, "nothing is taken away", all)
	here.AwaitRest()
	here.Kill() // the management cluster is lost
	mustRun(t, "move", "--to-kubeconfig="+tm.there.kubeconfig, "--from-directory="+directory)
	tm.reportProvisioned(tm.there)

	tm.await(tm.there, "the other management cluster knows what is installed", all)
	there.AwaitRest()
	g.Expect(tm.releases()).To(Equal(installed))
	requests := tm.workload.requests(t, tm.user(), start)
	g.Expect(writesButNotes(requests)).To(BeEmpty(), "neither is a business of the workload cluster")
	g.Expect(by(tm.version(tm.there), requests)).NotTo(BeEmpty())
	tm.expectAllMoved(tm.there)
}
