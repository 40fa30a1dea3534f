// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestTwoOwners restores a namespace from a backup on another management cluster, while the first one continues.
func TestTwoOwners(t *testing.T) {
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
