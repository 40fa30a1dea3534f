// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// findUnwanted looks for what is installed and no longer wanted. What is in doubt is
// left as it is, and the rest is leaving.
func (p *pass) findUnwanted(wanted []addon) {
	keep := sets.New[deliver.Release]()
	for i := range wanted {
		keep.Insert(wanted[i].release())
	}
	for _, record := range removalOrder(p.installed, keep) {
		if reason, message := doubt(p.ca, record, p.undecided); reason != "" {
			status := statusOf(record, addonsv1.AddonUnassigned)
			if reason == reasons.StackUndecided && p.undecided[record.Stack].quiet {
				p.statuses = append(p.statuses, p.formerly(status))
				continue
			}
			status.Reason, status.Message = reason, shorten(message)
			p.statuses = append(p.statuses, status)
			continue
		}
		p.leaving = append(p.leaving, record)
	}
}

// removeLeaving removes what is leaving: what others depend on goes after these, and
// each one after those that may take something of it over. Otherwise an object that is
// in both would be deleted, and made anew.
func (p *pass) removeLeaving(ctx context.Context) {
	now, waiting := removable(p.leaving)
	arrivals, held := p.arrivals(ctx), sets.New[deliver.Release]()
	for _, record := range p.leaving {
		status := statusOf(record, addonsv1.AddonRemoving)
		if successors := p.successorsOf(ctx, record, arrivals); len(successors) > 0 {
			held.Insert(record.Release)
			status.Reason, status.Message = reasons.WaitingForSuccessor, shorten(fmt.Sprintf(
				"Waiting for add-on %s, which may take over objects of this one. See why it isn't ready, or take it out of its stack", message.List(successors, ", ", named)))
		} else if by, ok := waiting[record.Release]; ok {
			status.Reason, status.Message = reasons.WaitingForDependent, fmt.Sprintf("Waiting for add-on %s to be removed", by)
		} else {
			continue
		}
		p.statuses = append(p.statuses, status)
	}
	for _, record := range now {
		if !held.Has(record.Release) {
			p.remove(ctx, record)
		}
	}
}

// remove takes the removal of one add-on as far as it can go.
func (p *pass) remove(ctx context.Context, record deliver.Summary) {
	status := statusOf(record, addonsv1.AddonRemoving)
	if p.silent {
		p.statuses = append(p.statuses, status)
		return
	}
	outcome, err := p.Deliverer.Remove(ctx, p.workload.target(), record.Release, p.leavingReleases()...)
	switch {
	case err != nil:
		p.clusterFailed(err, &status)
		status.Phase = addonsv1.AddonRemoving
	case outcome.Gone:
		p.reinstalls.removed(p.installKey(record.Release))
		p.workload.conn.InvalidateFacts()
		p.record(ctx, p.ca, removedEvent(&status, outcome.Message))
		return
	default:
		p.note(outcome, &status)
	}
	p.statuses = append(p.statuses, status)
}
