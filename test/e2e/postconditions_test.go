// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestPostconditionOfAnInstalledAddon adds a condition to an add-on that is ready. It isn't
// ready until that holds, and what depends on it waits; no revision is made of it. Once it
// has held it isn't looked at again.
func TestPostconditionOfAnInstalledAddon(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tn, s := newProd(t, 0)
	tn.install(tn.small("settings"))
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Postconditions = []addonsv1.ObjectsCondition{{
			Expression: "gate.data.open == 'yes'",
			Objects:    []addonsv1.ConditionObject{{Key: "gate", APIVersion: "v1", Kind: "ConfigMap", Namespace: tn.namespace, Name: "gate"}},
		}}
		spec.Addons = append(spec.Addons, tn.small("dependent", func(a *addonsv1.Addon) { a.DependsOn = []string{"settings"} }))
	})
	waits := []clusterCheck{
		phase("settings", addonsv1.AddonUpgrading, "WaitingForPostcondition", "gate"),
		phase("dependent", addonsv1.AddonPending, "WaitingForDependency", "settings"),
	}
	tn.awaitCluster("prod", "the condition doesn't hold", waits...)
	tn.restart()
	tn.settle()
	tn.awaitCluster("prod", "a restart changes nothing", waits...)

	gate := &corev1.ConfigMap{ObjectMeta: tn.named("gate"), Data: map[string]string{"open": "yes"}}
	g.Expect(s.Create(t.Context(), gate)).To(Succeed())
	tn.awaitReady("platform", "it holds")
	g.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}), "nothing of the add-on has changed")

	tn.settle()
	start := s.mark(t)
	tn.restart()
	tn.settle()
	requests := start.requests(t, tn.clusterUser("prod"))
	g.Expect(reads(requests, "configmaps", "", "get")).To(BeEmpty(), "it held, and isn't looked at again")
	g.Expect(writes(requests)).To(BeEmpty())
}
