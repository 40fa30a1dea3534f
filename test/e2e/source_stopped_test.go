// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestSourcesStopped stops all sources of a fleet, restarts the manager with an
// emptied cache, makes a new cluster, and starts the sources again.
func TestSourcesStopped(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const clusters = 10
	g := NewWithT(t)
	tn := newTenant(t)
	s := workloadServer(t, 0)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	write(t, credentials, "ca.crt", authority.PEM)
	offered := publish(t, origin, "offered")
	servers := map[string]*faulty.Server{}
	for _, kind := range sourceKinds {
		servers[kind] = faulty.Start(t, authority, offered)
	}
	start := func() { tn.startManager("--credentials-dir="+credentials, "--cache-dir="+cache) }
	start()
	add := func(name string) {
		t.Helper()
		tn.makeClusterWithAll(name, s, offered, func(kind string) *faulty.Server { return servers[kind] })
	}
	var names []string
	for i := range clusters {
		names = append(names, fmt.Sprintf("cluster-%d", i))
		add(names[i])
	}
	for _, name := range names {
		tn.awaitCluster(name, "the sources are there", ready(sourceKinds...))
	}
	tn.settle()

	unready, workload := tn.watchReady(), s.mark(t)
	for _, server := range servers {
		server.Stop()
	}
	for _, name := range names {
		tn.poke(name, "stopped")
	}
	tn.settle()
	tn.stopManager()
	g.Expect(os.RemoveAll(cache)).To(Succeed())
	start()
	add("new")
	var waiting []clusterCheck
	for _, kind := range sourceKinds {
		waiting = append(waiting, phase(kind, addonsv1.AddonPending, "SourceUnavailable", servers[kind].Host+" refuses connections"))
	}
	waiting = append(waiting, condition(addonsv1.AddonsReadyCondition, metav1.ConditionFalse, addonsv1.AddonsProgressingReason, "refuses connections"))
	tn.awaitCluster("new", "its add-ons wait for their sources", waiting...)
	tn.awaitStatus("new", "the stack says so of each source", func(stack *addonsv1.AddonStack) error {
		return errors.Join(
			checkCondition(stack, addonsv1.SourcesReadyCondition, metav1.ConditionFalse, "SourceUnavailable", "refuses connections"),
			sourcesAre(stack, metav1.ConditionFalse, "SourceUnavailable"),
		)
	})
	for _, name := range names {
		tn.poke(name, "restarted")
	}
	tn.awaitReconcile("clusteraddon", clusters)
	var wrote []string
	for _, name := range names {
		wrote = append(wrote, writes(workload.requests(t, tn.clusterUser(name)))...)
	}

	for _, server := range servers {
		server.Resume(t)
	}
	back := time.Now()
	tn.awaitCluster("new", "the sources are back", ready(sourceKinds...))
	t.Logf("ready %s after the sources were back", time.Since(back).Round(time.Millisecond))
	g.Expect(time.Since(back)).To(BeNumerically("<", 25*time.Second), "sources that don't answer are asked every 15 seconds at least")
	tn.awaitStatus("new", "each source is there again", func(stack *addonsv1.AddonStack) error {
		return errors.Join(
			checkCondition(stack, addonsv1.SourcesReadyCondition, metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""),
			sourcesAre(stack, metav1.ConditionTrue, addonsv1.SourceAvailableReason),
		)
	})
	g.Expect(wrote).To(BeEmpty(), "nothing is written to a cluster whose add-ons are installed")
	g.Expect(slices.DeleteFunc(unready(), func(found string) bool { return strings.HasPrefix(found, "new: ") })).To(BeEmpty(), "what is installed stays Ready")
}

// sourcesAre expects the condition of each source of the stack, and its address.
func sourcesAre(s *addonsv1.AddonStack, status metav1.ConditionStatus, reason string) error {
	if len(s.Status.Sources) != len(sourceKinds) {
		return fmt.Errorf("status.sources has %d entries, not %d", len(s.Status.Sources), len(sourceKinds))
	}
	for _, from := range s.Status.Sources {
		c := meta.FindStatusCondition(from.Conditions, addonsv1.SourceAvailableCondition)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(from.Address, "://") {
			return fmt.Errorf("source of add-on %s at %s: %v", from.Addon, from.Address, c)
		}
	}
	return nil
}
