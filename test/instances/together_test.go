// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestTwoInstancesStartTogether starts two instances that overlap at the same moment,
// with two replicas of the webhooks that know nothing of each other.
func TestTwoInstancesStartTogether(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const rounds = 10
	w := newWorld(t, usual)
	one := w.install(overlay{name: "one", namespaces: []string{"team-a", "team-b"}})
	two := w.install(overlay{name: "two", namespaces: []string{"team-b", "team-c"}})
	wins := map[string]int{}
	for round := range rounds {
		begin, began := w.Audit.Mark(t), time.Now()
		launches := []func(){one.prepare(heartbeat(1)...), two.prepare(heartbeat(1)...)}
		launches[round%2]()
		launches[1-round%2]()
		var winner, loser *instance
		wait.Until(t, patience, "one of the two is to get its scope, and the other one is to be refused", func() error {
			for _, order := range [][2]*instance{{one, two}, {two, one}} {
				first, err := order[0].registered()
				if err != nil {
					return err
				}
				second, err := order[1].registered()
				if err != nil {
					return err
				}
				if active(first) == nil && waiting(addonsv1.ScopeHeldCondition, addonsv1.ScopeTakenReason, order[0].namespace+"/")(second) == nil {
					winner, loser = order[0], order[1]
					return nil
				}
			}
			return fmt.Errorf("neither")
		})
		wins[winner.name]++
		for _, pi := range written(begin.Requests(t, wrote)) {
			if pi.Namespace == loser.namespace && pi.HoldsScope() {
				t.Errorf("round %d: %s got its scope, and %s was granted its own, too", round, winner.name, loser.name)
			}
		}
		winner.awaitRegistered("the winner is to run its controllers", func(pi *addonsv1.ProviderInstance) error { return counted(pi, 0) })
		// A watch of the last round may end, and be written down, in this one.
		now := func(e *event) bool { return e.RequestReceivedTimestamp.After(began) }
		expectNone(t, begin.Requests(t, both(now, both(audit.By(loser.user()), reads(watched...)))), "who is refused looks at nothing")
		// The loser first: it isn't to win now.
		loser.last().stop()
		winner.last().stop()
	}
	t.Logf("of %d rounds, each won: %v", rounds, wins)
}

// written are the ProviderInstances as they were stored, in their order.
func written(events []event) []*addonsv1.ProviderInstance {
	var all []*addonsv1.ProviderInstance
	for i := range events {
		e := &events[i]
		pi := &addonsv1.ProviderInstance{}
		if e.ObjectRef.Resource != "providerinstances" || e.Verb == "delete" || !succeeded(e) || e.ResponseObject == nil || json.Unmarshal(e.ResponseObject.Raw, pi) != nil {
			continue
		}
		all = append(all, pi)
	}
	return all
}
