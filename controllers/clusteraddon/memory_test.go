// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

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
			m, installed := newMemory(), 0
			time := testingclock.NewFakeClock(time.Now())
			m.installs.Clock = time
			start, release := time.Now(), deliver.Release{Namespace: "apps", Name: "web"}
			for ; !time.Now().After(start.Add(tc.within)); time.Step(tc.every) {
				if m.installPause(release, time.Now()) == 0 {
					m.installs.Next(release.String(), time.Now())
					installed++
				}
			}
			if installed < tc.least || installed > tc.most {
				t.Errorf("installed %d times", installed)
			}
		})
	}
}
