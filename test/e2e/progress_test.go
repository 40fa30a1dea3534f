// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
)

// workloadChart is a Deployment whose pods are stuck if .Values.stuck.
var workloadChart = chart{
	"values.yaml": "stuck: false\n",
	"templates/deploy.yaml": deployment("{{ .Release.Name }}", "1",
		controlplane.PodFate+": "+quoted("{{ if .Values.stuck }}"+controlplane.PodStuck+"{{ end }}")),
}

// TestStuck has an add-on that never becomes ready.
func TestStuck(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 1)
	path := tn.writeChart("workload", "1.0.0", workloadChart)
	stuck := withValues(map[string]any{"stuck": true})
	tn.makeStack("platform", nil,
		tn.addon("last", path, after("middle")),
		tn.addon("middle", path, after("first")),
		tn.addon("first", path, stuck, func(a *addonsv1.Addon) { a.ProgressDeadlineSeconds = ptr.To[int32](10) }),
		tn.addon("free", path),
	)
	tn.awaitCluster("prod", "who waits for whom is to be seen, and nobody waits without need",
		phase("first", addonsv1.AddonInstalling, "", "Deployment"),
		phase("middle", addonsv1.AddonPending, "WaitingForDependency", "first"),
		phase("last", addonsv1.AddonPending, "WaitingForDependency", "middle"),
		installedAs("free", 1, "1.0.0"))
	tn.Expect(s.release(t, tn.namespace, "middle")).To(BeZero(), "nothing of an add-on is applied before its dependencies are ready")

	tn.awaitCluster("prod", "after its deadline the add-on counts as failed, and says what isn't ready",
		phase("first", addonsv1.AddonFailed, "", tn.namespace+"/first"))
	tn.Expect(s.release(t, tn.namespace, "middle")).To(BeZero())

	tn.changeAddon("platform", "first", withValues(map[string]any{"stuck": false}))
	tn.awaitReady("platform", "an upgrade isn't held up by an installation that never came to its end")
	tn.awaitCluster("prod", "all follow", ready("free", "first", "middle", "last"), installedAs("middle", 1, ""), installedAs("last", 1, ""))

	tn.changeAddon("platform", "first", stuck)
	tn.awaitCluster("prod", "an upgrade that gets stuck is under way", phase("first", addonsv1.AddonUpgrading, "", ""))
	tn.changeAddon("platform", "first", withValues(map[string]any{"stuck": false}))
	tn.awaitReady("platform", "and the next change is taken up at once")
	for _, r := range s.history(t, tn.namespace, "first") {
		tn.Expect(r.Info.Status.IsPending()).To(BeFalse(), "no revision stays pending, or Helm refuses to work on the release: revision %d is %s", r.Version, r.Info.Status)
	}
}
