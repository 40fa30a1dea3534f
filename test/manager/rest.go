// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/wait"
)

const (
	// calm is how long nothing may happen for a manager to count as idle: longer than the delays after which
	// controllers look again.
	calm = 1500 * time.Millisecond
	// restTimeout is how long managers may take to come to rest.
	restTimeout = 90 * time.Second
)

// AwaitRest returns when the controllers have nothing to do any more.
func (p *Process) AwaitRest() {
	p.t.Helper()
	AwaitRest(p.t, p)
}

// AwaitRest returns when none of the managers has anything to do any more: what one does may be an event for another.
func AwaitRest(t testing.TB, managers ...*Process) {
	t.Helper()
	var last Activity
	since := time.Now()
	wait.Until(t, restTimeout, "the managers are to come to rest", func() error {
		now, err := activityOf(managers)
		if err != nil || now != last || now.Backlog != 0 || !now.Started {
			last, since = now, time.Now()
		}
		if err == nil && time.Since(since) < calm {
			err = fmt.Errorf("%.0f reconciles so far, %.0f under way", now.Reconciles, now.Backlog)
		}
		return err
	})
}

func activityOf(managers []*Process) (Activity, error) {
	all := Activity{Started: true}
	for _, m := range managers {
		a, err := m.Activity()
		if err != nil {
			return all, err
		}
		all.Started = all.Started && a.Started
		all.Reconciles += a.Reconciles
		all.Backlog += a.Backlog
	}
	return all, nil
}
