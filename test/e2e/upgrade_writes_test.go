// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/audit"
)

// TestWritesWithoutARollout compares the audit logs of an upgrade of a stack that has no rollout with what they were before
// there were any. The add-on takes values from a Secret.
func TestWritesWithoutARollout(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const clusters = 8
	r := newRolling(t, "plain", clusters)
	r.create(r.secret("inputs", map[string]string{"values.yaml": "text: one"}))
	r.changeStack("platform", fromSecret(nil))
	r.awaitReady("platform", "the same values from a Secret")
	r.settle()
	revision := r.latestRevision("platform")

	kinds := func(events []auditEvent) map[string]int {
		all := map[string]int{}
		for _, e := range events {
			if o := e.ObjectRef; o != nil && audit.Write(&e) && !registers(e) && !strings.Contains(e.RequestURI, "dryRun=") {
				all[strings.TrimSuffix(fmt.Sprint(e.Verb, " ", o.Resource, "/", o.Subresource), "/")]++
			}
		}
		return all
	}
	upgrade := func(edit func(), hub, cluster map[string]int) {
		t.Helper()
		since, workload := world.hub.mark(t), workloadServer(t, 1).mark(t)
		edit()
		r.awaitReady("platform", "it is upgraded")
		r.settle()
		is := kinds(since.requests(t, r.user))
		delete(is, "create events") // as many as phases that are seen
		delete(is, "patch events")
		delete(is, "patch addonstacks/status") // as often as clusters are counted
		delete(is, "patch clusteraddons/status")
		g.Expect(is).To(Equal(hub))
		for name := range r.clients {
			g.Expect(kinds(workload.requests(t, r.clusterUser(name)))).To(Equal(cluster), name)
		}
	}
	onCluster := map[string]int{"create secrets": 1, "patch configmaps": 1, "update secrets": 2}
	upgrade(func() { r.edit("two", "none") }, map[string]int{"create controllerrevisions": 1, "patch clusteraddons": clusters}, onCluster)
	r.changeStack("platform", fromSecret(nil))
	r.awaitReady("platform", "back")
	upgrade(func() { r.setValues("text: three") }, map[string]int{}, onCluster)
	g.Expect(r.latestRevision("platform")).To(Equal(revision), "a Secret's change is no revision")
}
