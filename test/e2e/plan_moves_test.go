// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// TestPlansOfObjectsThatMove has an add-on give an object to another one, and both stay. What is written is what the plan says, object
// by object; what it calls refused is refused.
func TestPlansOfObjectsThatMove(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takerIsFirst bool
		of           func(giver, taker *addonsv1.Addon)
		refused      bool
	}{
		"the giver is first":             {},
		"the taker is first":             {takerIsFirst: true},
		"the taker depends on the giver": {of: func(_, taker *addonsv1.Addon) { taker.DependsOn = []string{"giver"} }},
		"the giver depends on the taker": {of: func(giver, _ *addonsv1.Addon) { giver.DependsOn = []string{"taker"} }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn, s := newProd(t, 1)
			addons := func(version string, giver, taker chart) []addonsv1.Addon {
				gives, takes := tn.addon("giver", tn.writeChart("giver", version, giver)), tn.addon("taker", tn.writeChart("taker", version, taker))
				if tc.of != nil {
					tc.of(&gives, &takes)
				}
				all := []addonsv1.Addon{gives, takes}
				if tc.takerIsFirst {
					slices.Reverse(all)
				}
				return all
			}
			tn.install(addons("1.0.0", having("one", "shared"), having("two"))...)
			tn.settle()
			after := addons("2.0.0", having("one"), having("two", "shared"))
			edit := func(spec *addonsv1.AddonStackSpec) { spec.Addons = after }
			p := tn.planOf("moves", edit)
			beginning := s.mark(t)
			tn.changeStack("platform", edit)
			if tc.refused {
				tn.awaitCluster("prod", "the taker is refused", phase("taker", addonsv1.AddonFailed, object.ReasonOwnedByOther, ""))
			} else {
				tn.awaitReady("platform", "the object has moved")
			}
			tn.settle()
			for _, e := range beginning.requests(t, tn.clusterUser("prod")) {
				if len(objectsWritten([]auditEvent{e})) > 0 {
					t.Logf("%s %s: %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
				}
			}
			t.Logf("%+v", p.Status.Groups)
			shared := "configmaps " + tn.namespace + "/shared"
			if tc.refused {
				tn.Expect(changesOf(p, "Refused")).To(Equal([]string{shared}))
				tn.Expect(p.Status.Clusters.Refused).To(BeEquivalentTo(1))
				return
			}
			tn.Expect(changesOf(p, "Delete")).To(Equal([]string{shared}))
			tn.Expect(changesOf(p, "Create")).To(Equal([]string{shared}))
			tn.Expect(p.Status.Clusters.Refused).To(BeZero())
			tn.Expect(tn.configMapsOn(s)["shared"].Labels).To(HaveKeyWithValue(addonsv1.AddonLabel, "taker"))
		})
	}
}
