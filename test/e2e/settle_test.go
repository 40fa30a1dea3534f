// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	chandler "github.com/cluster-chandler/chandler/test/manager"
)

// settle returns when the controllers have nothing to do any more.
func (tn *tenant) settle() {
	tn.t.Helper()
	settleAll(tn.t, tn.manager)
}

// settleAll returns when the managers have begun to work, and none of them has
// anything to do any more.
func settleAll(t *testing.T, managers ...*manager) {
	t.Helper()
	processes := make([]*chandler.Process, 0, len(managers))
	for _, m := range managers {
		processes = append(processes, m.Process)
	}
	poll(t, 30*time.Second, "the managers are to begin", func() error {
		for _, p := range processes {
			if a, err := p.Activity(); err != nil || a.Reconciles > 0 {
				return err
			}
		}
		return errors.New("no reconcile so far")
	})
	chandler.AwaitRest(t, processes...)
}

// awaitReconcile returns when the controller has reconciled since it had done
// so this often, and has nothing left to do.
func (tn *tenant) awaitReconcile(controller string, before float64) {
	tn.t.Helper()
	poll(tn.t, 30*time.Second, "a change of an annotation is to be looked at", func() error {
		now, err := tn.manager.reconciled(controller)
		if err == nil && now <= before {
			err = fmt.Errorf("%.0f reconciles, as before", now)
		}
		if err != nil {
			return err
		}
		a, err := tn.manager.Activity()
		if err == nil && a.Backlog > 0 {
			err = fmt.Errorf("%.0f reconciles under way", a.Backlog)
		}
		return err
	})
}
