// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestOutage takes the API server of a workload cluster away in the middle of
// each step, and gives it back.
func TestOutage(t *testing.T) {
	long.Test(t)
	t.Parallel()
	undisturbed := newLifeCycle(t, "undisturbed", nil)
	undisturbed.run(crashPoint{})
	for name, take := range map[string]func(*lifeCycle){
		"refused": func(l *lifeCycle) { l.proxy.refuse() },
		"silent":  func(l *lifeCycle) { l.proxy.swallow(l.t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := crashPoint{write: 6}
			l := newLifeCycle(t, name, outage(take))
			l.run(at)
			l.expectSame(undisturbed, at)
		})
	}
}

// outage takes the server away until the status says that something is wrong.
func outage(take func(*lifeCycle)) disturbance {
	return func(l *lifeCycle, at crashPoint) func() {
		gone := make(chan struct{})
		l.proxy.atWrite(at.write, at.answered, func() { take(l); close(gone) })
		return func() {
			if !l.untilSprung(l.proxy, gone) {
				return
			}
			l.awaitCluster(l.cluster, "the status is to tell that requests fail", retrying)
			l.proxy.open(l.t)
		}
	}
}

func retrying(ca *addonsv1.ClusterAddon) error {
	s := statusOf(ca, "crashing")
	if s == nil || s.Reason != "Retrying" {
		return fmt.Errorf("status of the add-on: %+v", s)
	}
	return nil
}
