// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestColumns looks at what kubectl shows.
func TestColumns(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.makeCluster("prod", workloadServer(t, 0), nil)
	tn.startManager()
	tn.makeStack("platform", nil, tn.small("settings"))
	tn.makeStack("wrong", nil, tn.addon("wrong", "nowhere"))
	tn.makeStack("nobody", labels("a=b"), tn.small("nobody"))
	tn.awaitCluster("prod", "one add-on is ready, one is not", installedAs("settings", 1, ""), phase("wrong", "Pending", "", ""))
	tn.awaitReady("platform", "the good stack is ready")
	tn.settle()

	tn.run("kubectl get as", func(t *testing.T, tn *tenant) {
		table := tn.kubectlGet(t, "as")
		tn.Expect(table[0]).To(Equal([]string{"NAME", "CLUSTERS", "READY", "FAILED", "OK", "AGE", "MESSAGE"}))
		rows := byName(table)
		tn.Expect(rows["platform"][:5]).To(Equal([]string{"platform", "1", "1", "0", "True"}))
		tn.Expect(rows["wrong"][:5]).To(Equal([]string{"wrong", "1", "0", "1", "False"}))
		tn.Expect(rows["nobody"][:5]).To(Equal([]string{"nobody", "0", "0", "0", "True"}))
		tn.Expect(strings.Join(rows["nobody"], " ")).To(And(ContainSubstring("No Cluster of namespace "+tn.namespace+" has the labels"), ContainSubstring("and none has another value there")))
	})
	tn.run("kubectl get -o wide", func(t *testing.T, tn *tenant) {
		tn.Expect(tn.kubectlGet(t, "as", "-o", "wide")[0]).To(ContainElements("WAITING", "REVISION", "SOURCES"))
		table := tn.kubectlGet(t, "ca", "-o", "wide", "-l", addonsv1.AssignedStackLabelPrefix+"platform", "-l", addonsv1.AssignedStackLabelPrefix+"wrong")
		tn.Expect(table[0]).To(ContainElements("STACKS", "DRIFT"))
		tn.Expect(byName(table)["prod"]).To(ContainElement("platform,wrong"))
	})
	tn.run("kubectl get ca", func(t *testing.T, tn *tenant) {
		table := tn.kubectlGet(t, "ca")
		tn.Expect(table[0]).To(Equal([]string{"NAME", "ADDONS", "READY", "REASON", "AGE", "MESSAGE"}))
		row := byName(table)["prod"]
		tn.Expect(row[:4]).To(Equal([]string{"prod", "1/2", "False", "AddonsProgressing"}))
		tn.Expect(strings.Join(row, " ")).To(ContainSubstring("wrong: Pending, ArtifactNotFound"), "the message says what is missing")
	})
	tn.run("kubectl get cluster-api", func(t *testing.T, tn *tenant) {
		var names []string
		for _, row := range tn.kubectlGet(t, "cluster-api") {
			names = append(names, row[0])
		}
		tn.Expect(names).To(ContainElements(
			"addonstack.addons.cluster.x-k8s.io/platform", "clusteraddon.addons.cluster.x-k8s.io/prod", "cluster.cluster.x-k8s.io/prod"),
			"the category shows all of Cluster API's objects, and Chandler's with them")
	})
}

// kubectlGet returns the words of each line.
func (tn *tenant) kubectlGet(t *testing.T, what ...string) [][]string {
	t.Helper()
	out := tn.kubectl(t, append([]string{"get"}, what...)...)
	var table [][]string
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 0 {
			table = append(table, words)
		}
	}
	return table
}

// kubectl runs kubectl on the management cluster, in the tenant's namespace, and returns
// what it prints.
func (tn *tenant) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	dir, err := controlplane.BinDir(context.WithoutCancel(t.Context()), os.Stderr, "kubectl")
	must.Succeed(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(kubeconfig, world.hub.Kubeconfig(), 0o600))
	args = append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + tn.namespace}, args...)
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args[2:], " "), err, out)
	}
	t.Logf("kubectl %s\n%s", strings.Join(args[2:], " "), out)
	return string(out)
}

func byName(table [][]string) map[string][]string {
	rows := map[string][]string{}
	for _, row := range table {
		rows[row[0]] = row
	}
	return rows
}

// TestDescribe reads in `kubectl describe clusteraddon` what became of an add-on, from its
// installation to its removal.
func TestDescribe(t *testing.T) {
	long.Test(t)
	t.Parallel()
	d := newDrifting(t, 2, nil)
	d.settle()
	d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
	awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
	d.awaitEvent("DriftRepaired", "Service "+d.namespace+"/web was deleted")
	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Values = valuesOf(map[string]any{"tag": "2"}) })
	d.awaitCluster("prod", "an upgrade is installed", installedAs("web", 2, "1.0.0"))
	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = "nowhere" })
	d.awaitCluster("prod", "the next one can't be", phase("web", addonsv1.AddonPending, "ArtifactNotFound", "nowhere"))
	d.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels("no=cluster") })
	d.expectRemoved(t, d.s, "web")
	d.awaitEvent("AddonRemoved", "web")

	told := eventReason.FindAllStringSubmatch(d.kubectl(t, "describe", "clusteraddon", "prod"), -1)
	var story []string
	for _, line := range told {
		story = append(story, line[1])
	}
	d.Expect(story).NotTo(BeEmpty())
	at := 0
	for _, reason := range []string{"Connected", "AddonReady", "DriftRepaired", "AddonReady", "ArtifactNotFound", "AddonRemoved"} {
		i := slices.Index(story[at:], reason)
		d.Expect(i).To(BeNumerically(">=", 0), "%s in %v, after %d of them", reason, story, at)
		at += i + 1
	}
}

// eventReason is the reason in a line of an event.
var eventReason = regexp.MustCompile(`(?m)^  (?:Normal|Warning) +(\w+) `)
