// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestCache kills a manager while it reconciles a fleet, empties its cache, and
// starts it again; and then lets it fill the cache. CHANDLER_E2E_CLUSTERS is the size of the fleet.
// It isn't parallel: beside others a source would count as slow.
func TestCache(t *testing.T) {
	long.Test(t)
	clusters := environmentNumber(t, "CHANDLER_E2E_CLUSTERS", 20)
	tn := newTenant(t)
	s := workloadServer(t, 0)
	server := registryOf(t, registry.Options{PlainHTTP: true}, "1.0.0")
	server.Requests(t) // those of the push
	dir := filepath.Join(t.TempDir(), "cache")
	start := func() { tn.startManager("--cache-dir=" + dir) }
	start()
	name := func(i int) string { return fmt.Sprintf("cluster-%02d", i) }
	for i := range clusters {
		tn.makeCluster(name(i), s, labels("cluster="+name(i)))
		tn.makeStack(name(i), labels("cluster="+name(i)), tn.addon("settings", "", inNamespace(tn.namespace+"-"+name(i)), fromOCI(server.URL("charts/settings"), "1.0.0", plainHTTP)))
	}
	for i := range clusters {
		tn.awaitCluster(name(i), "the chart is there", ready("settings"))
	}
	tn.settle()
	NewWithT(t).Expect(server.Requests(t)).To(HaveLen(2), "one request for the manifest and one for the archive, for all clusters")
	archives := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "*", strings.Repeat("[0-9a-f]", 64)))
		must.Succeed(t, err)
		return found
	}
	NewWithT(t).Expect(archives()).To(HaveLen(1))

	tn.run("a restart with an emptied cache disturbs nothing", func(t *testing.T, tn *tenant) {
		unready := tn.watchReady()
		workload := s.mark(t)
		for i := range clusters {
			tn.poke(name(i), "before the restart")
		}
		tn.manager.Kill() // in the midst of it
		tn.Expect(os.RemoveAll(dir)).To(Succeed())
		start()
		for i := range clusters {
			tn.poke(name(i), "after the restart")
		}
		tn.awaitReconcile("clusteraddon", float64(clusters-1))
		tn.settle()
		for i := range clusters {
			tn.awaitCluster(name(i), "nothing changed", ready("settings"), installedAs("settings", 1, "1.0.0"))
			tn.Expect(writes(workload.requests(t, tn.clusterUser(name(i))))).To(BeEmpty(), "nothing is written to a workload cluster")
		}
		tn.Expect(unready()).To(BeEmpty(), "no ClusterAddon stops being Ready")
		tn.Expect(tn.warnings()).To(BeEmpty(), "no event tells of an error")
		tn.Expect(server.Requests(t)).To(BeEmpty(), "what is installed needs no archive")
	})

	tn.run("the cache is filled once somebody needs it", func(t *testing.T, tn *tenant) {
		unready := tn.watchReady()
		for i := range clusters {
			tn.changeAddon(name(i), "settings", withValues(map[string]any{"text": "another one"}))
		}
		for i := range clusters {
			tn.awaitCluster(name(i), "other values make another revision", ready("settings"), installedAs("settings", 2, "1.0.0"))
		}
		tn.settle()
		tn.Expect(unready()).NotTo(ContainElement(ContainSubstring("Artifact")), "nobody fails for want of the archive")
		tn.Expect(tn.warnings()).To(BeEmpty())
		asked := server.Requests(t)
		tn.Expect(asked).To(HaveLen(1), "one download for all clusters")
		tn.Expect(asked[0]).To(ContainSubstring("/blobs/"))
		tn.Expect(archives()).To(HaveLen(1))
	})

	tn.run("what is in the cache can be installed while the registry is down", func(t *testing.T, tn *tenant) {
		tn.stopManager()
		server.Stop()
		start()
		for i := range clusters {
			tn.changeAddon(name(i), "settings", withValues(map[string]any{"text": "a third one"}))
		}
		for i := range clusters {
			tn.awaitCluster(name(i), "the archive is in the cache", ready("settings"), installedAs("settings", 3, "1.0.0"))
		}
		NewWithT(t).Expect(tn.warnings()).To(BeEmpty())
	})

	tn.run("a cache that can't be used is none", func(_ *testing.T, tn *tenant) {
		tn.stopManager()
		tn.Expect(os.RemoveAll(dir)).To(Succeed())
		tn.Expect(os.WriteFile(dir, nil, 0o600)).To(Succeed())
		start()
		tn.awaitReconcile("clusteraddon", float64(clusters-1))
		tn.settle()
		for i := range clusters {
			tn.awaitCluster(name(i), "nothing changed", ready("settings"))
		}
		tn.Expect(tn.warnings()).To(BeEmpty())
		log, err := os.ReadFile(tn.manager.LogFile)
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(strings.Count(string(log), "The cache can't be used")).To(Equal(1), "it is told once")
		usable, err := tn.manager.Sum("chandler_source_cache_usable")
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(usable).To(BeZero())
	})
}

// watchReady watches all ClusterAddons until the function that it returns is
// called, which tells what wasn't Ready meanwhile, and why.
func (tn *tenant) watchReady() func() []string {
	tn.t.Helper()
	var found []string
	stop := tn.watchAll(world.hub, &addonsv1.ClusterAddonList{}, func(event watch.Event) {
		if ca, ok := event.Object.(*addonsv1.ClusterAddon); ok && !conditions.IsTrue(ca, addonsv1.ReadyCondition) {
			found = append(found, fmt.Sprintf("%s: %+v", ca.Name, ca.Status))
		}
	})
	return func() []string {
		tn.t.Helper()
		stop()
		return found
	}
}

// warnings are the events in the tenant's namespace that tell of something wrong.
func (tn *tenant) warnings() []string {
	tn.t.Helper()
	var found []string
	for _, e := range tn.events() {
		if e.Type != corev1.EventTypeNormal {
			found = append(found, fmt.Sprintf("%s %s: %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note))
		}
	}
	return found
}
