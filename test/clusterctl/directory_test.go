// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/long"
)

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
