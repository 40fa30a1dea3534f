// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// changing is a fleet in which clusters join, leave, pause and get other labels while edits are rolled out.
type changing struct {
	*rolling
	random  *rand.Rand
	here    map[string]bool // whether a cluster is paused
	joined  int
	text    string
	edits   int
	longest time.Duration // that a cluster that joined took
}

// TestRolloutAmidChanges does random things to a fleet while edits are rolled out. In the end all clusters have the last
// edit, and nothing that was wanted has ever been uninstalled. A cluster that joins is ready at once.
func TestRolloutAmidChanges(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	g := NewWithT(t)
	const first = 5
	seed := uint64(environmentNumber(t, "CHANDLER_RANDOM_SEED", int(time.Now().UnixNano()%1e6)))
	c := &changing{rolling: newRolling(t, "any", first), random: rand.New(rand.NewPCG(seed, 1)), here: map[string]bool{}, joined: first, text: "one"}
	for i := range first {
		c.here[fmt.Sprint("any-", i)] = false
	}
	since, installs := world.hub.mark(t), workloadServer(t, 1).mark(t)
	c.changeStack("platform", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(2), Waves: []addonsv1.RolloutWave{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: labels("stage=canary")}, Optional: true},
		{Name: "few", Size: ofNumber(2), Soak: &metav1.Duration{Duration: time.Second}},
	}}))
	changes := environmentNumber(t, "CHANDLER_ROLLOUT_CHANGES", 30)
	for range changes {
		c.disturb()
	}
	for name, isPaused := range c.here {
		if isPaused {
			c.pause(name, false)
		}
	}
	c.write("last")
	c.awaitPhase(addonsv1.RolloutCompleted, int32(len(c.here)), fmt.Sprint("seed ", seed, ": all come to the end"))
	names := slices.Sorted(maps.Keys(c.here))
	c.awaitTextOn(names, c.text, "all have the last edit")
	for name := range c.here {
		gone := described(installs.requests(t, c.clusterUser(name)), func(e auditEvent) bool {
			return e.Verb == "delete" && strings.Contains(e.RequestURI, "/configmaps/")
		})
		g.Expect(gone).To(BeEmpty(), name)
	}
	t.Logf("seed %d: %d changes, %d edits, %d clusters joined, %d are here; one that joined took %s at most; %d assignments written",
		seed, changes, c.edits, c.joined-first, len(c.here), c.longest.Round(time.Millisecond), len(c.assignments(since)))
}

// disturb does one thing that happens to fleets.
func (c *changing) disturb() {
	c.t.Helper()
	names := slices.Sorted(maps.Keys(c.here))
	some := names[c.random.IntN(len(names))]
	switch n := c.random.IntN(10); {
	case n < 3 && len(names) < 12, len(names) < 3:
		began, name := time.Now(), c.join(c.joined)
		c.joined++
		c.here[name] = false
		c.awaitCluster(name, "it joined", ready("settings"))
		c.longest = max(c.longest, time.Since(began))
	case n < 5:
		c.remove(newCluster(c.namespace, some, nil))
		c.remove(&addonsv1.ClusterAddon{ObjectMeta: c.named(some)})
		delete(c.here, some)
	case n < 7:
		c.relabel(some, "env=prod", []string{"stage=canary", "stage=prod"}[c.random.IntN(2)])
	case n < 8:
		c.pause(some, !c.here[some])
	default:
		c.write(fmt.Sprint("edit ", c.edits))
	}
}

func (c *changing) pause(name string, isPaused bool) {
	c.t.Helper()
	c.here[name] = isPaused
	c.pauseCluster(name, isPaused)
}

func (c *changing) write(text string) {
	c.t.Helper()
	c.text = text
	c.edits++
	c.edit(text, "none")
}
