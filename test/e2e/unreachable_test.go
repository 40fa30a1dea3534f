// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// soon is within seconds: long enough for a busy machine, too short for a
// retry after a long pause.
const soon = 15 * time.Second

// TestUnreachable has a cluster that refuses connections and one that swallows
// them, beside one that works.
func TestUnreachable(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	path := tn.smallChart()
	refusing, silent := tn.startProxy("refusing", workloadServer(t, 0)), tn.startProxy("silent", workloadServer(t, 1))
	refusing.refuse()
	silent.swallow(t)
	tn.makeClusterObject("refusing", labels("env=prod"))
	tn.makeClusterObject("silent", labels("env=prod"))
	tn.startManager()
	tn.makeStack("platform", labels("env=prod"), tn.small("settings"))
	beside := tn.besideAttempt(silent, path)
	tn.awaitCluster(beside, "what is connected to meanwhile becomes ready", ready("settings-"+beside))
	tn.makeCluster("works", workloadServer(t, 2), labels("env=prod"))
	tn.awaitCluster("works", "a cluster that works isn't held up by those that don't", ready("settings"))

	tn.awaitCluster("refusing", "the condition is to say what is wrong",
		condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ConnectionRefused", refusing.address),
		condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "ConnectionRefused", ""))
	tn.awaitCluster("silent", "the condition is to tell silence from refusal",
		condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ConnectionTimedOut", silent.address),
		condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "ConnectionTimedOut", ""))
	stack := tn.awaitStack("platform", "the stack counts those as waiting", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, "1 of 3 clusters are ready; 2 can't be worked on now")
	tn.Expect(stack.Status.Clusters).To(HaveValue(Equal(addonsv1.ClusterCounts{Total: 3, Ready: 1, Waiting: 2})))

	before := transition(t, tn, "refusing")
	throughout(t, 3*time.Second, "a condition doesn't flap while nothing changes", func() error {
		if now := transition(t, tn, "refusing"); now != before {
			return fmt.Errorf("it changed from %s to %s", before, now)
		}
		return nil
	})

	refusing.open(t)
	silent.open(t)
	for _, name := range []string{"refusing", "silent"} {
		tn.awaitCluster(name, "a cluster that comes back is to become ready by itself", ready("settings"))
	}
	tn.awaitReady("platform", "all clusters are ready in the end")
}

// besideAttempt makes a Cluster that the manager connects to during one attempt at the silent
// one, and returns its name. An attempt may end just then, so there are a few tries.
func (tn *tenant) besideAttempt(silent *proxy, path string) string {
	tn.t.Helper()
	for i := range 5 {
		poll(tn.t, patience, "the manager is to try the silent cluster", func() error {
			if silent.hanging().Len() == 0 {
				return errors.New("no connection")
			}
			return nil
		})
		name := fmt.Sprintf("beside-%d", i)
		tn.makeStackFor(name, path)
		var before, after sets.Set[net.Conn]
		p := tn.startProxy(name, workloadServer(tn.t, 2))
		asked := make(chan struct{})
		p.atFirst(func() { after = silent.hanging(); close(asked) })
		before = silent.hanging()
		tn.makeClusterObject(name, labels("cluster="+name))
		select {
		case <-asked:
		case <-time.After(patience):
			tn.t.Fatalf("cluster %s isn't asked for anything", name)
		}
		if before.Intersection(after).Len() > 0 {
			return name
		}
	}
	tn.t.Fatal("no cluster is connected to while an attempt at the silent one hangs: one cluster holds up others")
	return ""
}

// TestKubeconfigRotation replaces kubeconfigs.
func TestKubeconfigRotation(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	first := workloadServer(t, 0)
	path := tn.smallChart()
	dead := tn.startProxy("dead", first)
	dead.refuse()
	tn.makeClusterObject("dead", labels("cluster=dead"))
	tn.makeClusterObject("none", labels("cluster=none"))
	tn.makeCluster("hostile", first, labels("cluster=hostile"))
	tn.writeKubeconfig("hostile", []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}}}]\n"))
	tn.startManager()
	for _, name := range []string{"dead", "none", "hostile"} {
		tn.makeStackFor(name, path)
	}
	tn.awaitCluster("dead", "the old address is dead", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ConnectionRefused", ""))
	tn.awaitCluster("none", "there is no kubeconfig yet", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "KubeconfigMissing", "none-kubeconfig"))
	tn.awaitCluster("hostile", "a kubeconfig that runs a program is refused", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "KubeconfigRefused", "hostile-kubeconfig"))

	for _, name := range []string{"dead", "none", "hostile"} {
		start := time.Now()
		tn.writeKubeconfig(name, tn.userOn(first, name).Kubeconfig)
		await(t, first, tn.configMapOf("settings-"+name), soon, "a new kubeconfig takes effect within seconds", exists)
		tn.awaitCluster(name, "the cluster is ready with its new kubeconfig", ready("settings-"+name))
		t.Logf("%s: %s", name, time.Since(start).Round(10*time.Millisecond))
	}
}

// makeStackFor makes a stack for one Cluster alone, whose add-on has a name of
// its own: so several Clusters can share a server.
func (tn *tenant) makeStackFor(cluster, path string) {
	tn.t.Helper()
	tn.makeStack("for-"+cluster, labels("cluster="+cluster), tn.addon("settings-"+cluster, path))
}

func transition(t *testing.T, tn *tenant, cluster string) string {
	t.Helper()
	ca := tn.clusterAddon(cluster)
	must.Succeed(t, world.hub.Get(t.Context(), tn.key(cluster), ca))
	c := conditions.Get(ca, addonsv1.ClusterReachableCondition)
	return fmt.Sprintf("%s %s %s %q", c.LastTransitionTime, c.Status, c.Reason, c.Message)
}

// TestKubeconfigOfAnotherCluster has the kubeconfig lead to another cluster for a while, in which an add-on is
// dropped. Then the cluster is replaced for good.
func TestKubeconfigOfAnotherCluster(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	right, wrong := workloadServer(t, 1), workloadServer(t, 2)
	tn.makeCluster("prod", right, nil)
	tn.startManager()
	tn.makeStack("platform", nil, tn.small("one"), tn.small("two"))
	tn.awaitCluster("prod", "it is installed", ready("one", "two"))
	another := condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, addonsv1.AnotherClusterReason, "")

	tn.writeKubeconfig("prod", tn.userOn(wrong, "prod").Kubeconfig)
	tn.awaitCluster("prod", "it is told", another)
	drop := func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] }
	p := tn.planOf("astray", drop)
	tn.Expect(p.Status.Clusters.Held).To(BeEquivalentTo(1), "%+v", p.Status)
	tn.Expect(p.Status.Groups).To(ConsistOf(HaveField("Addons", ConsistOf(HaveField("Reason", addonsv1.AnotherClusterReason)))))
	tn.changeStack("platform", drop)
	tn.settle()
	tn.Expect(tn.configMapsOn(wrong)).NotTo(Or(HaveKey("one"), HaveKey("two")))
	tn.restart()
	tn.awaitCluster("prod", "it is told again", another)
	tn.Expect(tn.configMapsOn(right)).To(And(HaveKey("one"), HaveKey("two")))

	tn.writeKubeconfig("prod", tn.userOn(right, "prod").Kubeconfig)
	tn.expectRemoved(t, right, "two")
	tn.awaitCluster("prod", "it is as before", ready("one"))
	tn.Expect(right.release(t, tn.namespace, "one")).To(Equal(releaseState{1, "deployed"}))

	tn.writeKubeconfig("prod", tn.userOn(wrong, "prod").Kubeconfig)
	tn.awaitCluster("prod", "it is another again", another)
	tn.remove(tn.clusterAddon("prod"))
	tn.awaitCluster("prod", "somebody says that it was replaced", ready("one"))
	tn.Expect(tn.configMapsOn(wrong)).To(HaveKey("one"))
	tn.Expect(tn.configMapsOn(right)).To(HaveKey("one"), "it is left as it is")
}
