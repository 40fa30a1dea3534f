// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestRaceAndTable(t *testing.T) {
	g := NewWithT(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	r := newRace([]wantedAddon{{"web", "1.1.0"}}, []*member{{name: "bergen"}, {name: "genoa"}})
	table := newTable(newScreen(file), r)

	g.Expect(r.observe(nil)).To(BeFalse())
	table.draw() // nothing is seen: nothing is printed
	g.Expect(r.missing()).To(Equal("bergen: has no ClusterAddon\ngenoa: has no ClusterAddon"))

	outdated := clusterAddon("bergen", addonsv1.AddonReady, "1.0.0")
	failed := clusterAddon("genoa", addonsv1.AddonFailed, "1.1.0")
	g.Expect(r.observe([]addonsv1.ClusterAddon{outdated, failed})).To(BeFalse(), "an older version has not arrived")
	table.draw()
	table.draw() // nothing changed: nothing is printed
	g.Expect(r.missing()).To(ContainSubstring("web Ready 1.0.0, wanted 1.1.0"))
	g.Expect(r.missing()).To(ContainSubstring("web Failed 1.1.0, wanted 1.1.0: BecauseOf: some reason"))

	stale := clusterAddon("bergen", addonsv1.AddonReady, "1.1.0")
	stale.Generation = 2
	g.Expect(r.observe([]addonsv1.ClusterAddon{stale})).To(BeFalse(), "a status about an older spec says nothing")

	ready := []addonsv1.ClusterAddon{clusterAddon("bergen", addonsv1.AddonReady, "1.1.0"), clusterAddon("genoa", addonsv1.AddonReady, "1.1.0")}
	g.Expect(r.observe(ready)).To(BeTrue())
	table.draw()
	g.Expect(r.first()).To(And(BeNumerically(">", 0), BeNumerically("<=", r.last()), BeNumerically("<", time.Minute)))

	out, err := os.ReadFile(file.Name())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal("" +
		"  CLUSTER   READY WEB                  ELAPSED\n" +
		"  bergen    0/1   Ready 1.0.0            0.0 s\n" +
		"  genoa     0/1   Failed 1.1.0           0.0 s\n" +
		"    web: BecauseOf: some reason\n" +
		"  bergen    0/1   Ready 1.1.0            0.0 s\n" +
		"  genoa     0/1   Ready 1.1.0            0.0 s\n"))
}

func clusterAddon(name string, phase addonsv1.AddonPhase, version string) addonsv1.ClusterAddon {
	ca := addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{ClusterName: name}}
	ca.Generation, ca.Status.ObservedGeneration = 1, 1
	ca.Status.ReadyAddons = "0/1"
	ca.Status.Addons = []addonsv1.AddonStatus{{Name: "web", Phase: phase, Version: version, Reason: "BecauseOf", Message: "some\nreason"}}
	ca.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue}}
	return ca
}

func TestShorten(t *testing.T) {
	g := NewWithT(t)
	g.Expect(shorten("Ready 1.0.0", 12)).To(Equal("Ready 1.0.0"))
	g.Expect(shorten("Installing 1.0.0-βeta.1", 12)).To(Equal("Installing …"))
}
