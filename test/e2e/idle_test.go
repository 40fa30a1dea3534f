// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestIdle lets a manager look at what is as it should be.
func TestIdle(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	tn.create(tn.configMapWithChart("stored", configMapChart.archive("stored", "1.0.0")))
	tn.create(tn.secret("values", map[string]string{"values.yaml": "text: from a Secret\n"}))
	tn.create(tn.secret("prod-values", map[string]string{"values.yaml": "more: from another\n"}))
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.startManager()
	tn.install(
		tn.small("from-path"),
		tn.addon("from-object", "", func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "stored"}}
			a.ValuesFrom = fromSecrets("values", "{{ .Cluster.metadata.name }}-values")
		}),
		tn.small("from-template", withTemplate("text: '{{ .Cluster.metadata.name }}'\n")),
	)
	tn.settle()
	user := tn.clusterUser("prod")

	tn.run("reconciling costs nothing", func(t *testing.T, tn *tenant) {
		hub, workload := world.hub.mark(t), s.mark(t)
		for i := range 5 {
			tn.reconcileAgain("prod", fmt.Sprint(i))
		}
		tn.settle()
		onHub, onWorkload := hub.requests(t, tn.user), workload.requests(t, user)
		tn.Expect(writes(onHub)).To(BeEmpty(), "an unchanged reconcile writes nothing to the management cluster")
		tn.Expect(reads(onHub, "configmaps", "", "get", "list")).To(BeEmpty(), "the chart's digest is known")
		tn.Expect(reads(onHub, "secrets", "", "get", "list")).To(BeEmpty(), "the values are known")
		tn.Expect(writes(onWorkload)).To(BeEmpty(), "an unchanged reconcile writes nothing to the workload cluster")
		tn.Expect(described(onWorkload, notProbe)).To(BeEmpty(), "it doesn't even read")
	})

	tn.run("a restart costs a look", func(t *testing.T, tn *tenant) {
		tn.stopManager()
		hub, workload := world.hub.mark(t), s.mark(t)
		tn.startManager()
		tn.awaitReady("platform", "nothing changed")
		tn.settle()
		onHub, onWorkload := hub.requests(t, tn.user), workload.requests(t, user)
		tn.Expect(writes(onHub)).To(BeEmpty(), "a restart writes nothing to the management cluster")
		tn.Expect(writes(onWorkload)).To(BeEmpty(), "a restart writes nothing to the workload cluster")
		tn.Expect(len(reads(onWorkload, "secrets", "", "list"))).To(BeNumerically("<=", 1), "one LIST shows the records of all releases: %v", reads(onWorkload, "secrets", "", "list"))
		tn.Expect(reads(onWorkload, "secrets", "", "get")).To(BeEmpty(), "a record's metadata tells that it is settled")
		tn.Expect(reads(onHub, "configmaps", "stored", "get")).To(BeEmpty(), "the record tells which chart that version of the ConfigMap holds")
		t.Logf("after a restart: %d requests to the management cluster, %d to the workload cluster", len(onHub), len(onWorkload))
	})

	tn.run("a lost ClusterAddon costs nothing", func(t *testing.T, tn *tenant) {
		workload := s.mark(t)
		tn.remove(tn.clusterAddon("prod"))
		tn.awaitCluster("prod", "it is made again, and knows what is installed", ready("from-path", "from-object", "from-template"))
		tn.settle()
		tn.Expect(writes(workload.requests(t, user))).To(BeEmpty(), "the records in the workload cluster tell that nothing is to be done")
	})

	tn.run("a move to another management cluster costs nothing", func(t *testing.T, tn *tenant) {
		tn.stopManager()
		workload := s.mark(t)
		tn.moveAway("prod", "platform")
		tn.startManager()
		tn.awaitReady("platform", "the objects are the same, with other UIDs and no status")
		tn.awaitCluster("prod", "the status is rebuilt from the records", ready("from-path", "from-object", "from-template"))
		tn.settle()
		tn.Expect(writes(workload.requests(t, user))).To(BeEmpty(), "as after `clusterctl move`, which restores no status: the workload cluster isn't touched")
	})
}

// moveAway deletes a Cluster and a stack with all that Chandler made of them,
// and makes them again, as they are on the target of "clusterctl move".
func (tn *tenant) moveAway(cluster, stack string) {
	tn.t.Helper()
	ctx := tn.t.Context()
	c, s := newCluster(tn.namespace, cluster, nil), tn.newStack(stack, nil)
	for _, obj := range []client.Object{c, s} {
		must.Succeed(tn.t, world.hub.Get(ctx, tn.key(obj.GetName()), obj))
	}
	must.Succeed(tn.t, world.hub.DeleteAllOf(ctx, &appsv1.ControllerRevision{}, client.InNamespace(tn.namespace)))
	for _, obj := range []client.Object{c, s, tn.clusterAddon(cluster)} {
		tn.remove(obj)
	}
	tn.makeClusterObject(cluster, c.Labels)
	tn.makeStack(stack, s.Spec.ClusterSelector.MatchLabels, s.Spec.Addons...)
}

// notProbe leaves out the requests that ask whether a cluster is alive.
func notProbe(e auditEvent) bool { return !audit.Probe(&e) }

func (tn *tenant) configMapWithChart(name string, archive []byte) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: tn.named(name), BinaryData: map[string][]byte{addonsv1.DefaultArtifactKey: archive}}
	return c
}

func (tn *tenant) secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: tn.named(name), StringData: data}
	return s
}

// TestFleetAtRest has five add-ons on each of several clusters, and looks at them again and
// again: no workload cluster hears of it. With CHANDLER_REST_SECONDS it also waits so long.
func TestFleetAtRest(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	path := tn.writeChart("kinds", "1.0.0", chart{"templates/all.yaml": configMap("{{ .Release.Name }}", "x") +
		"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '{{ .Release.Name }}'}\n" +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {ports: [{port: 80}]}\n"})
	clusters, servers := tn.prodClusters()
	tn.startManager()
	tn.settle()
	before := tn.footprint()
	tn.install(tn.addon("a", path), tn.addon("b", path), tn.addon("c", path), tn.addon("d", path), tn.addon("e", path))
	tn.settle()
	marks := make([]mark, len(servers))
	for i, s := range servers {
		marks[i] = s.mark(t)
	}
	if seconds := environmentNumber(t, "CHANDLER_REST_SECONDS", 0); seconds > 0 {
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-t.Context().Done():
		}
	}
	for i := range 3 {
		seen := tn.reconciled("clusteraddon")
		for _, cluster := range clusters {
			tn.poke(cluster, fmt.Sprint(i))
		}
		tn.awaitReconcile("clusteraddon", seen)
	}
	tn.settle()
	for i, s := range servers {
		requests := marks[i].requests(t, tn.clusterUser(clusters[i]))
		// A watch ends after a while, and is begun again.
		asked := described(requests, func(e auditEvent) bool { return notProbe(e) && e.Verb != "watch" })
		tn.Expect(asked).To(BeEmpty(), "cluster %s, server %s", clusters[i], s.Name)
	}
	t.Logf("%d clusters × 5 add-ons at rest: %s; before the add-ons: %s", len(clusters), tn.footprint(), before)
}

// footprint is what the manager has of the machine.
func (tn *tenant) footprint() string {
	tn.t.Helper()
	value := func(metric string) float64 {
		v, err := tn.manager.Sum(metric)
		must.Succeed(tn.t, err)
		return v
	}
	return fmt.Sprintf("%.1f MiB resident, %.1f MiB of heap, %.0f goroutines",
		value("process_resident_memory_bytes")/(1<<20), value("go_memstats_heap_alloc_bytes")/(1<<20), value("go_goroutines"))
}
