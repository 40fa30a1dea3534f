// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"maps"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// delivery installs and upgrades the add-ons that are wanted.
type delivery struct{ *clusterRun }

// ensureAll takes each wanted add-on as far as it can go, and returns those that may take objects over.
func (q delivery) ensureAll(ctx context.Context) (all result, successors []*addon) {
	holder := releaseHolders(q.wanted, q.installed, q.unresolved)
	ready := map[string]bool{} // "stack/name"
	maps.Copy(ready, q.absent) // what isn't there now holds nobody
	for i := range q.wanted {
		a := &q.wanted[i]
		one := q.ensure(ctx, q.turnOf(a, holder[a.release()], all.unreachable, ready))
		if mayTakeOver(one) {
			successors = append(successors, a)
		}
		// An add-on that waits for a point of an upgrade runs as it was.
		runs := isHeldBack(one.status.Reason) && q.installed[a.release()].Status == deliver.StatusDeployed
		ready[a.stack+"/"+a.Name] = isInstalled(one.status.Phase) || runs
		all.add(one)
	}
	return all, successors
}

// ensure takes one add-on as far as it can go: it finds out what the decision needs, and acts on the decision.
func (q delivery) ensure(ctx context.Context, t *turn) (one addonResult) {
	defer q.contain(ctx, t.status, &one)
	for {
		switch step := t.facts.Step(); step {
		case decide.Compare:
			q.compare(ctx, t)
		case decide.CheckPrecondition:
			q.checkPrecondition(ctx, t)
		default:
			return q.act(ctx, t, step)
		}
	}
}

// installedStatus returns the status of a wanted add-on with what its record says.
func (q delivery) installedStatus(a *addon) addonsv1.AddonStatus {
	status := a.status()
	record, installed := q.installed[a.release()]
	if !installed {
		return status
	}
	describe(&status, record)
	if record.Status == deliver.StatusDeployed {
		return status
	}
	// The record of a revision that isn't deployed doesn't tell how many objects are ready.
	switch was := q.previousStatus(status); {
	case was.Revision != status.Revision:
	case was.Objects == nil:
		status.Objects = nil
	default:
		status.Objects.Ready = min(was.Objects.Ready, status.Objects.Total)
	}
	return status
}
