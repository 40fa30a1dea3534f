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

// unwanted returns the records of what is installed and no longer wanted, in the order of
// removal. Of what is in doubt, and is left as it is, it returns the statuses.
func (q *request) unwanted() (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	keep := sets.New[deliver.Release]()
	for i := range q.wanted {
		keep.Insert(q.wanted[i].release())
	}
	for _, record := range removalOrder(q.installed, keep) {
		reason, message := whyKept(q.ca, record, q.unresolved)
		status := statusOf(record, addonsv1.AddonUnassigned)
		switch {
		case reason == "":
			leaving = append(leaving, record)
		case reason == reasons.StackUndecided && q.unresolved[record.Stack].keepsStatus:
			kept = append(kept, q.previousStatus(status))
		default:
			status.Reason, status.Message = reason, shorten(message)
			kept = append(kept, status)
		}
	}
	return leaving, kept
}

// removeLeaving removes what is leaving: what others depend on goes after these, and
// each one after those that may take something of it over. Otherwise an object that is
// in both would be deleted, and made anew.
func (q *request) removeLeaving(ctx context.Context, successors []*addon, all *result) {
	if len(q.leaving) == 0 {
		return
	}
	now, waiting := removable(q.leaving)
	contents := q.contentsOfEach(ctx, successors)
	awaiting := sets.New[deliver.Release]()
	for _, record := range q.leaving {
		status := statusOf(record, addonsv1.AddonRemoving)
		if names := q.successorsOf(ctx, record, contents); len(names) > 0 {
			awaiting.Insert(record.Release)
			all.add(because(status, reasons.WaitingForSuccessor, fmt.Sprintf(
				"Waiting for add-on %s, which may take over objects of this one. See why it isn't ready, or take it out of its stack",
				message.List(names, ", ", named))))
		} else if by, ok := waiting[record.Release]; ok {
			all.add(because(status, reasons.WaitingForDependent, fmt.Sprintf("Waiting for add-on %s to be removed", by)))
		}
	}
	for _, record := range now {
		switch {
		case awaiting.Has(record.Release):
		case all.unreachable:
			all.add(addonResult{status: statusOf(record, addonsv1.AddonRemoving)})
		default:
			all.add(q.remove(ctx, record))
		}
	}
}

// remove takes the removal of one add-on as far as it can go.
func (q *request) remove(ctx context.Context, record deliver.Summary) addonResult {
	status := statusOf(record, addonsv1.AddonRemoving)
	outcome, err := q.Deliverer.Remove(ctx, q.workload.target(), record.Release, q.leavingReleases()...)
	switch {
	case err != nil:
		one := requestFailed(err, q.previousStatus(status))
		one.status.Phase = addonsv1.AddonRemoving
		return one
	case outcome.Gone:
		delete(q.memory.installs, record.Release)
		q.workload.conn.InvalidateFacts()
		q.record(ctx, q.ca, removedEvent(&status, outcome.Message))
		return addonResult{gone: true}
	}
	return delivered(outcome, status)
}
