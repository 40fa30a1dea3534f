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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestFollowing follows a range of versions in a registry, which publishes newer
// ones, a wrong one, and goes away.
func TestFollowing(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	options := registry.Options{}
	server := registry.Start(t, options)
	dir := t.TempDir()
	trust := func() {
		t.Helper()
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, "ca.crt"), server.CA, 0o600)).To(Succeed())
	}
	trust()
	publish := func(versions ...string) {
		t.Helper()
		for _, version := range versions {
			server.Push(t, configMapChart.archive("settings", version), "charts/settings", version)
		}
	}
	follows := func(allowed string) addonsv1.Addon {
		return tn.addon("settings", "", fromOCI(server.URL("charts/settings"), allowed))
	}
	start := func() { tn.startManager("--credentials-dir=" + dir) }

	publish("1.3.0", "1.4.0", "1.4.1", "1.5.0-rc.1", "2.0.0")
	start()
	tn.makeCluster("first", workloadServer(t, 0), labels("env=prod"))
	tn.makeCluster("second", workloadServer(t, 1), labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), follows("~1.4"))
	upgraded := func(tn *tenant, revision int32, version string) {
		tn.t.Helper()
		for _, cluster := range []string{"first", "second"} {
			tn.awaitCluster(cluster, "each cluster gets what the stack follows", installedAs("settings", revision, version))
		}
	}

	tn.run("the newest version that is allowed", func(_ *testing.T, tn *tenant) {
		upgraded(tn, 1, "1.4.1")
		s := tn.awaitStatus("platform", "it says what it follows", followsAt("settings", "1.4.1", ""), sources(metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""), counts(2, 2))
		tn.Expect(s.Status.Following[0].Since.Time).To(BeTemporally("~", time.Now(), time.Minute))
		revisions := tn.revisionsOf("platform")
		tn.Expect(revisions).To(HaveLen(1))
		kept, err := stack.SpecOf(&revisions[0])
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(kept.Addons[0].Chart.Version).To(Equal("1.4.1"), "what is behind a revision is exact")
		tn.Expect(kept.Addons[0].Chart.OCI.Digest).To(HavePrefix("sha256:"))
	})

	tn.run("a look that finds nothing writes nothing", func(t *testing.T, tn *tenant) {
		tn.settle()
		server.Requests(t)
		hub := world.hub.mark(t)
		tn.lookNow("platform")
		var asked []string
		poll(t, patience, "somebody asks for a look", func() error {
			if asked = append(asked, server.Requests(t)...); len(asked) == 0 {
				return errors.New("the registry wasn't asked")
			}
			return nil
		})
		tn.settle()
		tn.Expect(asked).To(HaveLen(1), "one request tells all versions")
		tn.Expect(asked[0]).To(ContainSubstring("/v2/charts/settings/tags/list"))
		tn.Expect(writes(hub.requests(t, tn.user))).To(BeEmpty())
	})

	tn.run("a newer version", func(_ *testing.T, tn *tenant) {
		publish("1.4.2", "1.6.0")
		tn.lookNow("platform")
		upgraded(tn, 2, "1.4.2")
		tn.awaitStatus("platform", "it says what it follows now", followsAt("settings", "1.4.2", ""), counts(2, 2))
		tn.Expect(tn.revisionsOf("platform")).To(HaveLen(2))
		tn.awaitEvent("NewVersion", "1.4.2, before 1.4.1")
	})

	tn.run("a version that can't be used", func(t *testing.T, tn *tenant) {
		server.Push(t, configMapChart.archive("settings", "0.1.0"), "charts/settings", "1.4.3")
		tn.lookNow("platform")
		s := tn.awaitStatus("platform", "it isn't taken", followsAt("settings", "1.4.2", "1.4.3"), sources(metav1.ConditionFalse, "DigestMismatch", "1.4.3 isn't taken"), counts(2, 2))
		tn.Expect(checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "1.4.3 isn't taken")).To(Succeed(), "all that is installed is ready")
		tn.Expect(tn.revisionsOf("platform")).To(HaveLen(2))
		publish("1.4.4")
		tn.lookNow("platform")
		upgraded(tn, 3, "1.4.4")
		tn.awaitStatus("platform", "the next one is good", followsAt("settings", "1.4.4", ""), sources(metav1.ConditionTrue, "", ""), counts(2, 2))
	})

	tn.run("suspended", func(_ *testing.T, tn *tenant) {
		before := tn.revisionsOf("platform")
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Updates = &addonsv1.Updates{Suspend: ptr.To(true)} })
		publish("1.4.5")
		tn.lookNow("platform")
		tn.awaitStatus("platform", "it says what it would take", followsAt("settings", "1.4.4", "1.4.5"), sources(metav1.ConditionTrue, "", ""), counts(2, 2))
		tn.settle()
		tn.Expect(namesOf(tn.revisionsOf("platform"))).To(ConsistOf(namesOf(before)), "whether it is suspended is no part of what clusters run")
		upgraded(tn, 3, "1.4.4")
		tn.changeAddon("platform", "settings", withValues(map[string]any{"text": "changed"}))
		upgraded(tn, 4, "1.4.4")
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Updates = nil })
		upgraded(tn, 5, "1.4.5")
		tn.awaitStatus("platform", "it continues", followsAt("settings", "1.4.5", ""), counts(2, 2))
	})

	t.Run("a restart asks for nothing, and changes nothing", func(t *testing.T) { tn.in(t).restartsAtRest(server, start) })

	tn.run("a range that is none", func(_ *testing.T, tn *tenant) {
		tn.makeStack("wrong", labels("env=none"), follows("1.2 and more"))
		tn.awaitStack("wrong", "it says what is wrong", addonsv1.ValidCondition, metav1.ConditionFalse, addonsv1.InvalidVersionReason, "spec.addons[0].chart.version")
	})

	tn.run("a registry that is down", func(t *testing.T, tn *tenant) {
		server.Stop()
		tn.lookNow("platform")
		s := tn.awaitStatus("platform", "it says so", followsAt("settings", "1.4.5", ""), sources(metav1.ConditionFalse, "SourceUnavailable", "refuses connections"), counts(2, 2))
		tn.Expect(checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "refuses connections")).To(Succeed(), "what is installed stays ready")
		waiting := follows("1.x")
		waiting.Name = "more"
		tn.makeStack("later", labels("env=prod"), waiting)
		tn.awaitStack("later", "it waits", addonsv1.ReadyCondition, metav1.ConditionUnknown, "SourceUnavailable", "refuses connections")
		tn.Expect(tn.revisionsOf("later")).To(BeEmpty())
		upgraded(tn, 5, "1.4.5")

		options.Address = server.Host
		server = registry.Start(t, options)
		trust()
		publish("1.4.5", "1.7.0")
		back := time.Now()
		tn.awaitStatus("later", "the registry is back", sources(metav1.ConditionTrue, "", ""), counts(2, 2))
		t.Logf("installed %s after the registry was back", time.Since(back).Round(time.Millisecond))
		tn.lookNow("platform")
		tn.awaitStatus("platform", "the registry is back", followsAt("settings", "1.4.5", ""), sources(metav1.ConditionTrue, "", ""), counts(2, 2))
	})

	tn.run("a range that nothing published is in", func(_ *testing.T, tn *tenant) {
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "~1.4.0" })
		tn.awaitStatus("platform", "another range that allows it", followsAt("settings", "1.4.5", ""), counts(2, 2))
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "~1.4.6 || ~9" })
		tn.awaitStatus("platform", "the spec waits, clusters keep what they have", sources(metav1.ConditionUnknown, "ArtifactNotFound", "the newest is"))
		upgraded(tn, 5, "1.4.5")
	})
}

// TestFollowingTogether has two instances that manage one stack, each for its
// own Clusters, and follow one range.
func TestFollowingTogether(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	server := registry.Start(t, registry.Options{})
	dir := trusting(t, server.CA)
	publish := func(version string) {
		t.Helper()
		server.Push(t, configMapChart.archive("settings", version), "charts/settings", version)
	}
	suffix := utilrand.String(5)
	blue, green := "blue-"+suffix, "green-"+suffix
	tn.makeCluster("one", workloadServer(t, 0), labels(clusterv1.WatchLabel+"="+blue))
	tn.makeCluster("two", workloadServer(t, 1), labels(clusterv1.WatchLabel+"="+green))
	ofBlue, ofGreen := tn.instance("blue"), tn.instance("green")
	first := ofBlue.startManager("--watch-filter="+blue, "--credentials-dir="+dir)
	second := ofGreen.startManager("--watch-filter="+green, "--credentials-dir="+dir)
	publish("1.4.0")
	tn.create(tn.stackWithFilter("platform", addonsv1.SharedWatchFilter, tn.addon("settings", "", fromOCI(server.URL("charts/settings"), "~1.4"))))
	tn.awaitStatus("platform", "both instances install it", counts(2, 2), followsAt("settings", "1.4.0", ""), sources(metav1.ConditionTrue, "", ""))
	settleAll(t, first, second)

	for i, version := range []string{"1.4.1", "1.4.2"} {
		start := world.hub.mark(t)
		publish(version)
		tn.lookNow("platform")
		for _, cluster := range []string{"one", "two"} {
			tn.awaitCluster(cluster, "what one finds, both take", installedAs("settings", int32(i)+2, version))
		}
		tn.awaitStatus("platform", "both say the same", counts(2, 2), followsAt("settings", version, ""), says(blue, 1, 1), says(green, 1, 1))
		settleAll(t, first, second)
		byBlue, byGreen := start.requests(t, ofBlue.user), start.requests(t, ofGreen.user)
		NewWithT(t).Expect(len(creations(byBlue, "controllerrevisions", ""))+len(creations(byGreen, "controllerrevisions", ""))).To(
			BeNumerically("<=", 2), "at most one try each")
		NewWithT(t).Expect(tn.revisionsOf("platform")).To(HaveLen(i + 2))
	}

	start := world.hub.mark(t)
	tn.lookNow("platform")
	settleAll(t, first, second)
	NewWithT(t).Expect(append(writes(start.requests(t, ofBlue.user)), writes(start.requests(t, ofGreen.user))...)).To(BeEmpty(), "at rest nobody writes")
}

// awaitEvent waits for an event of the tenant's namespace.
func (tn *tenant) awaitEvent(reason, note string) {
	tn.t.Helper()
	poll(tn.t, patience, "an event is to tell", func() error {
		var notes []string
		for _, e := range tn.events() {
			if notes = append(notes, e.Reason+": "+e.Note); e.Reason == reason && strings.Contains(e.Note, note) {
				return nil
			}
		}
		return fmt.Errorf("no event %s with %q among %q", reason, note, notes)
	})
}

// sources expects the SourcesReady condition.
func sources(status metav1.ConditionStatus, reason, message string) stackCheck {
	return func(s *addonsv1.AddonStack) error {
		return checkCondition(s, addonsv1.SourcesReadyCondition, status, reason, message)
	}
}

// restartsAtRest restarts the manager, which asks the registry for nothing and writes
// nothing but what a start takes.
func (tn *tenant) restartsAtRest(server *registry.Registry, start func()) {
	tn.t.Helper()
	tn.settle()
	tn.stopManager()
	server.Requests(tn.t)
	hub := world.hub.mark(tn.t)
	start()
	tn.awaitReconcile("addonstack", 0)
	tn.settle()
	tn.Expect(server.Requests(tn.t)).To(BeEmpty(), "it isn't the stack's turn")
	tn.Expect(slices.DeleteFunc(writes(hub.requests(tn.t, tn.user)), func(w string) bool {
		return strings.Contains(w, "providerinstances") || strings.Contains(w, "leases")
	})).To(BeEmpty())
}
