// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/memory"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upkeep"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// A cluster that loses its records is installed no more than ten times in ten minutes. One
// that loses them now and then is repaired at once.
func TestInstallationsThatDoNotLast(t *testing.T) {
	for name, tc := range map[string]struct {
		every       time.Duration
		within      time.Duration
		least, most int
	}{
		"all the time":        {100 * time.Millisecond, 10 * time.Minute, 5, 10},
		"for hours":           {time.Second, 10 * time.Hour, 100, 130},
		"each quarter hour":   {15 * time.Minute, 10 * time.Hour, 40, 41},
		"twice in one minute": {time.Minute, time.Minute, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, installed := memory.New(), 0
			time := testingclock.NewFakeClock(time.Now())
			m.Installs.Clock = time
			start, release := time.Now(), deliver.Release{Namespace: "apps", Name: "web"}
			for ; !time.Now().After(start.Add(tc.within)); time.Step(tc.every) {
				if m.InstallPause(release, time.Now()) == 0 {
					m.Installs.Next(release.String(), time.Now())
					installed++
				}
			}
			if installed < tc.least || installed > tc.most {
				t.Errorf("installed %d times", installed)
			}
		})
	}
}

func TestRepairsOfOneClusterAreBounded(t *testing.T) {
	m, now, n := memory.New(), time.Now(), 0
	for range 1000 {
		if m.Repairs.AllowN(now, 1) {
			n++
		}
		now = now.Add(10 * time.Millisecond)
	}
	if n < upkeep.RepairBurst || n > upkeep.RepairBurst+11*upkeep.RepairRate {
		t.Errorf("%d in ten seconds", n)
	}
}
