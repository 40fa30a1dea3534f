// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// removeOthers removes what is installed and no longer wanted: what others depend
// on goes after these.
func (p *pass) removeOthers(ctx context.Context, wanted []addon) {
	keep := sets.New[deliver.Release]()
	for i := range wanted {
		keep.Insert(wanted[i].release())
	}
	var records []deliver.Summary
	for _, record := range removalOrder(p.installed, keep) {
		if reason, message := doubt(p.ca, record, p.undecided); reason != "" {
			status := statusOf(record, addonsv1.AddonUnassigned)
			status.Reason, status.Message = reason, shorten(message)
			p.statuses = append(p.statuses, status)
			continue
		}
		records = append(records, record)
	}
	now, waiting := removable(records)
	for _, record := range records {
		if by, ok := waiting[record.Release]; ok {
			status := statusOf(record, addonsv1.AddonRemoving)
			status.Reason, status.Message = ReasonWaitingForDependent, fmt.Sprintf("Waiting for add-on %s to be removed", by)
			p.statuses = append(p.statuses, status)
		}
	}
	for _, record := range now {
		p.remove(ctx, record)
	}
}

// remove takes the removal of one add-on as far as it can go.
func (p *pass) remove(ctx context.Context, record deliver.Summary) {
	status := statusOf(record, addonsv1.AddonRemoving)
	if p.silent {
		p.statuses = append(p.statuses, status)
		return
	}
	outcome, err := p.Deliverer.Remove(ctx, p.workload.target(), record.Release)
	switch {
	case err != nil:
		p.clusterFailed(err, &status)
		status.Phase = addonsv1.AddonRemoving
	case outcome.Gone:
		p.workload.conn.InvalidateFacts()
		p.record(ctx, p.ca, removedEvent(&status, outcome.Message))
		return
	default:
		p.note(outcome, &status)
	}
	p.statuses = append(p.statuses, status)
}
