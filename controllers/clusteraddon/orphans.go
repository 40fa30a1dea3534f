// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// tellOrphans writes into the records of stacks which leave their add-ons behind that they do. A removal reads it
// there, and the stack may be gone already, with its revision. So this comes first, and the assignment waits for it.
func (q removal) tellOrphans(ctx context.Context) error {
	var failed []error
	for release, record := range q.installed {
		if !q.isToldOrphan(record) || q.paused.Has(record.Stack) {
			continue
		}
		terms := record.Terms
		terms.DeletionPolicy = addonsv1.DeletionPolicyOrphan
		if err := q.terms().Write(ctx, record, terms); err != nil {
			failed = append(failed, fmt.Errorf("writing the deletion policy of add-on %s: %w", record.Name, err))
			continue
		}
		record.Terms = terms
		q.installed[release] = record
	}
	return errors.Join(failed...)
}

// isToldOrphan reports whether the record is to say, or says, that the add-on is left behind.
func (q removal) isToldOrphan(record deliver.Summary) bool {
	policy := stack.Assigned(q.ca.Spec.Stacks, record.Stack).DeletionPolicy
	return policy == addonsv1.DeletionPolicyOrphan && !releases.IsRemoving(record) && q.proofs.Prove(record)
}

// isOrphanRecorded reports whether each record of a stack says that its add-on is left behind: those that are seen, and
// those that the status has.
func (q removal) isOrphanRecorded(name string) bool {
	for _, record := range q.installed {
		if record.Stack == name && q.isToldOrphan(record) && record.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
			return false
		}
	}
	return stack.Assigned(q.ca.Spec.Stacks, name).DeletionPolicy == addonsv1.DeletionPolicyOrphan &&
		!slices.ContainsFunc(q.ca.Status.Addons, func(a addonsv1.AddonStatus) bool {
			_, isSeen := q.installed[deliver.Release{Namespace: a.Namespace, Name: a.Name}]
			return a.Stack == name && a.Revision > 0 && !isSeen
		})
}

// noteOrphans writes into the status which stacks leave their add-ons behind. It reports whether one doesn't any more: that
// is told before a record says another policy.
func (q removal) noteOrphans() (ends bool) {
	for i := range q.ca.Status.Stacks {
		is := &q.ca.Status.Stacks[i]
		was := is.RecordedDeletionPolicy
		if is.RecordedDeletionPolicy = ""; q.isOrphanRecorded(is.Name) {
			is.RecordedDeletionPolicy = addonsv1.DeletionPolicyOrphan
		}
		ends = ends || was != "" && is.RecordedDeletionPolicy == ""
	}
	return ends
}
