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
	tn.Expect(os.RemoveAll(cache)).To(Succeed())
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
	tn.Expect(time.Since(back)).To(BeNumerically("<", 25*time.Second), "sources that don't answer are asked every 15 seconds at least")
	tn.awaitStatus("new", "each source is there again", func(stack *addonsv1.AddonStack) error {
		return errors.Join(
			checkCondition(stack, addonsv1.SourcesReadyCondition, metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""),
			sourcesAre(stack, metav1.ConditionTrue, addonsv1.SourceAvailableReason),
		)
	})
	tn.Expect(wrote).To(BeEmpty(), "nothing is written to a cluster whose add-ons are installed")
	tn.Expect(slices.DeleteFunc(unready(), func(found string) bool { return strings.HasPrefix(found, "new: ") })).To(BeEmpty(), "what is installed stays Ready")
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

// TestFleetSharesDownloads has a hundred clusters that want the same charts at once: each is
// fetched once, and unpacked once.
// It isn't parallel: beside others a source would count as slow.
func TestFleetSharesDownloads(t *testing.T) {
	long.Test(t)
	const clusters = 100
	tn := newTenant(t)
	s := workloadServer(t, 2)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials := trusting(t, authority.PEM)
	offered := publish(t, origin, "offered")
	server := faulty.Start(t, authority, offered)
	for i := range clusters {
		tn.makeClusterWithAll(fmt.Sprintf("cluster-%d", i), s, offered, func(string) *faulty.Server { return server })
	}
	begun := time.Now()
	m := tn.startManager("--credentials-dir="+credentials, "--cache-dir="+filepath.Join(t.TempDir(), "cache"))
	for i := range clusters {
		tn.awaitCluster(fmt.Sprintf("cluster-%d", i), "it has all charts", ready(sourceKinds...))
	}
	t.Logf("%d clusters with %d charts each are ready after %s", clusters, len(sourceKinds), time.Since(begun).Round(time.Millisecond))

	asked := map[string][]string{}
	for _, r := range server.Requests() {
		asked[kindAsked(r)] = append(asked[kindAsked(r)], r.String())
	}
	for kind, requests := range asked {
		// A registry: a manifest and a blob; a repository: the index and the archive; a
		// host: the archive; GitHub: the release and the file.
		tn.Expect(len(requests)).To(BeNumerically("<=", 2), "%s is asked once for all clusters: %s", kind, strings.Join(requests, ", "))
	}
	tn.Expect(asked).To(HaveLen(len(sourceKinds)))
	for _, kind := range sourceKinds {
		bytes, err := m.Sum("chandler_source_artifact_bytes_total", `kind="`+kind+`"`)
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(bytes).To(Equal(float64(len(offered.archives[kind]))), "each archive came once")
	}
	unpacked, err := m.Sum("chandler_source_unpackings_total")
	tn.Expect(err).NotTo(HaveOccurred())
	tn.Expect(unpacked).To(Equal(float64(len(sourceKinds))), "each archive was unpacked once")
}
