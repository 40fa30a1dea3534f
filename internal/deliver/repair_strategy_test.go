// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
)

func recreated(image string) string {
	return strings.Replace(tiered(image), "  replicas: 1\n", "  replicas: 1\n  strategy: {type: Recreate}\n", 1)
}

// rolling is what kubectl makes of a Deployment's strategy: how to roll it is set by default.
const rolling = `{"spec":{"strategy":{"type":"RollingUpdate"}}}`

func (s *scaled) strategy() any {
	s.t.Helper()
	return s.app().Object["spec"].(map[string]any)["strategy"].(map[string]any)["type"]
}

// TestRepairOfAStrategy takes two steps, as Recreate must not stand beside how to roll.
func TestRepairOfAStrategy(t *testing.T) {
	for title, tc := range map[string]struct {
		ignore   drift.Rules
		changes  []string
		strategy string
		replicas int
		tier     string
	}{
		"alone":       {nil, []string{"app .metadata.labels.tier", "app .spec.replicas", "app .spec.strategy.type"}, "Recreate", 1, "front"},
		"with a rule": {byHPA, []string{"app .metadata.labels.tier", "app .spec.strategy.type"}, "Recreate", 3, "front"},
		"that a rule leaves": {drift.Rules{{Paths: []string{"/spec/strategy"}}},
			[]string{"app .metadata.labels.tier", "app .spec.replicas"}, "RollingUpdate", 1, "front"},
		"that a rule leaves to who made it": {drift.Rules{{Managers: []string{"kubectl-edit", "kubectl-label"}}}, []string{"app .spec.replicas"}, "RollingUpdate", 1, "back"},
		"that a rule leaves to somebody else": {drift.Rules{{Managers: []string{"hpa"}}},
			[]string{"app .metadata.labels.tier", "app .spec.strategy.type"}, "Recreate", 3, "front"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newScaledOf(t, recreated("example.com/app:1"))
			s.edit("kubectl-edit", s.app(), rolling)
			found := s.find(deliver.Repair{Release: s.want.Release, Ignore: tc.ignore, Report: true})
			s.Expect(changesOf(found)).To(Equal(tc.changes))
			s.Expect(s.strategy()).To(Equal("RollingUpdate"), "it is a report")
			found = s.find(deliver.Repair{Release: s.want.Release, Ignore: tc.ignore})
			s.Expect(changesOf(found)).To(Equal(tc.changes))
			s.Expect(found[0].Repaired).To(BeTrue(), "%+v", found[0])
			s.Expect(s.strategy()).To(Equal(tc.strategy))
			s.expect(tc.replicas, tc.tier)
			s.Expect(changesOf(s.find(deliver.Repair{Release: s.want.Release, Ignore: tc.ignore}))).To(BeEmpty())
		})
	}
}

// TestUpgradeToAnotherStrategy leaves what rules leave, as any upgrade.
func TestUpgradeToAnotherStrategy(t *testing.T) {
	t.Parallel()
	s := newScaled(t)
	next := s.of("2", recreated("example.com/app:2"))
	next.Ignore = byHPA
	s.Expect(s.settle(next).Phase).To(Equal(addonsv1.AddonReady))
	s.Expect(s.strategy()).To(Equal("Recreate"))
	s.expect(3, "front")
}

// TestRepairOfAStrategyBetweenItsSteps leaves what somebody takes there by a rule.
func TestRepairOfAStrategyBetweenItsSteps(t *testing.T) {
	t.Parallel()
	for step := range 3 {
		t.Run(fmt.Sprint("before write ", step), func(t *testing.T) {
			t.Parallel()
			s := &scaled{env: newEnv(t)}
			s.ns = s.namespace()
			s.want = s.of("1", recreated("example.com/app:1"))
			s.install(s.want)
			s.edit("kubectl-edit", s.app(), rolling)
			cluster, n := s.target.Client, 0
			s.target.Client = hasty{cluster, func() {
				if n++; n == step+1 {
					s.target.Client = cluster
					s.scale("hpa", 4)
				}
			}}
			s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA})
			s.Expect(n).To(BeNumerically(">", step))
			s.Expect(s.strategy()).To(Equal("Recreate"))
			s.expect(4, "front")
		})
	}
}
