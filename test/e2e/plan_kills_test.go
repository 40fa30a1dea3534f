// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestPlanThroughAKill kills the manager amid a dry run. The next one plans it all again, and nothing was written.
func TestPlanThroughAKill(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	f := &falling{rolling: newRolling(t, "planned", 3), proxies: map[string]*proxy{}}
	f.putBehindProxy("planned-1")
	f.awaitCluster("planned-1", "it is reached through the proxy", condition(addonsv1.ClusterReachableCondition, metav1.ConditionTrue, "", ""))
	f.settle()
	workload, died, victim := workloadServer(t, 1).mark(t), make(chan struct{}), f.manager
	f.proxies["planned-1"].atWrite(1, false, func() { victim.Kill(); close(died) })
	p := &addonsv1.AddonPlan{ObjectMeta: f.named("killed"), Spec: addonsv1.AddonPlanSpec{
		StackName: "platform", Template: f.edited(func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].ValuesTemplate = valuesFor("two", "none") }),
	}}
	f.create(p)
	<-died
	must.Succeed(t, world.hub.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	f.Expect(p.Status.Phase).To(Equal(addonsv1.PlanRunning))
	f.startManager()
	awaitPlan(t, p)
	f.Expect(p.Status.Clusters).To(Equal(addonsv1.PlanClusters{Total: 3, Changed: 3}))
	for name := range f.clients {
		f.Expect(writes(workload.requests(t, f.clusterUser(name)))).To(BeEmpty(), name)
	}
}
