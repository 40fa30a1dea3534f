// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestFleetAtRest has five add-ons on each of several clusters, and looks at them again and
// again: no workload cluster hears of it. With CHANDLER_REST_SECONDS it also waits so long.
func TestFleetAtRest(t *testing.T) {
	t.Parallel()
	tn, g := newTenant(t), NewWithT(t)
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
		seen, err := tn.manager.reconciled("clusteraddon")
		g.Expect(err).NotTo(HaveOccurred())
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
		g.Expect(asked).To(BeEmpty(), "cluster %s, server %s", clusters[i], s.Name)
	}
	t.Logf("%d clusters × 5 add-ons at rest: %s; before the add-ons: %s", len(clusters), tn.footprint(), before)
}

// footprint is what the manager has of the machine.
func (tn *tenant) footprint() string {
	tn.t.Helper()
	value := func(metric string) float64 {
		v, err := tn.manager.Sum(metric)
		must(tn.t, err)
		return v
	}
	return fmt.Sprintf("%.1f MiB resident, %.1f MiB of heap, %.0f goroutines",
		value("process_resident_memory_bytes")/(1<<20), value("go_memstats_heap_alloc_bytes")/(1<<20), value("go_goroutines"))
}
