// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

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
