// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/topology"
)

// TestCoreManagerRestarts kills the core manager while a hook holds the creation of a Cluster. It runs before the other
// tests, as they need Cluster API's webhooks.
func TestCoreManagerRestarts(t *testing.T) {
	long.Test(t)
	const name = "restarted"
	g := NewWithT(t)
	world.hooks.block(name, "BeforeClusterCreate", "not now")
	createCluster(t, name, localClass, v34, 0)
	awaitBlocked(t, name, "BeforeClusterCreate", "not now")

	world.Core.Kill()
	other := topology.NewCluster(key("other"), localClass, v34, 0)
	g.Expect(world.Create(t.Context(), other)).To(MatchError(ContainSubstring("connection refused")), "its webhooks are asked")
	world.hooks.block(name, "BeforeClusterCreate", "still not")
	g.Expect(world.Core.Start(t.Context())).To(Succeed())
	awaitBlocked(t, name, "BeforeClusterCreate", "still not")
	expectState(t, name, state{})
	deleteCluster(t, name)
	awaitGone(t, name)
	g.Expect(world.hooks.calls(name)).To(Equal([]string{"BeforeClusterCreate: control plane , workers ", "BeforeClusterDelete: control plane , workers "}))
}
