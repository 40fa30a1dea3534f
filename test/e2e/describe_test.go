// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

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
