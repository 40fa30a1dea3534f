// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import "time"

// Pauses before an add-on is installed once more whose record doesn't stay. The watch of
// records may be behind, so the first few installations are free.
const (
	freeInstalls      = 3
	firstInstallPause = 10 * time.Second
	lastInstallPause  = 5 * time.Minute
	installsForgotten = 2 * lastInstallPause
)

// installs count how often an add-on was installed that had no record.
type installs struct {
	number int
	last   time.Time
}

// pause returns how long to wait before the add-on is installed again; 0 if it may be now.
func (i installs) pause(now time.Time) time.Duration {
	if i.number < freeInstalls {
		return 0
	}
	pause := firstInstallPause
	for range min(i.number-freeInstalls, 10) {
		pause = min(2*pause, lastInstallPause)
	}
	return max(0, i.last.Add(pause).Sub(now))
}

// oneMore returns the count after an installation.
func (i installs) oneMore(now time.Time) installs {
	if now.Sub(i.last) > installsForgotten {
		i.number = 0
	}
	return installs{number: i.number + 1, last: now}
}
