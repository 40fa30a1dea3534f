// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// TellOrphans writes into the records of stacks which leave their add-ons behind that they do. A removal reads it
// there, and the stack may be gone already, with its revision. So this comes first, and the assignment waits for it.
func TellOrphans(ctx context.Context, o *gather.Observed, terms releases.Terms) error {
	var failed []error
	for release, record := range o.Installed {
		if !isOrphan(o, terms.Proofs, record) || o.Paused.Has(record.Stack) {
			continue
		}
		orphaned := record.Terms
		orphaned.DeletionPolicy = addonsv1.DeletionPolicyOrphan
		if err := terms.Write(ctx, record, orphaned); err != nil {
			failed = append(failed, fmt.Errorf("writing the deletion policy of add-on %s: %w", record.Name, err))
			continue
		}
		record.Terms = orphaned
		o.Installed[release] = record
	}
	return errors.Join(failed...)
}

// isOrphan reports whether the record is to say, or says, that the add-on is left behind.
func isOrphan(o *gather.Observed, proofs *releases.Proofs, record deliver.Summary) bool {
	policy := stack.Assigned(o.ClusterAddon.Spec.Stacks, record.Stack).DeletionPolicy
	return policy == addonsv1.DeletionPolicyOrphan && !releases.IsRemoving(record) && proofs.Prove(record)
}

// isOrphanRecorded reports whether each record of a stack says that its add-on is left behind: those that are seen, and
// those that the status has.
func isOrphanRecorded(o *gather.Observed, proofs *releases.Proofs, name string) bool {
	for _, record := range o.Installed {
		if record.Stack == name && isOrphan(o, proofs, record) && record.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
			return false
		}
	}
	return stack.Assigned(o.ClusterAddon.Spec.Stacks, name).DeletionPolicy == addonsv1.DeletionPolicyOrphan &&
		!slices.ContainsFunc(o.ClusterAddon.Status.Addons, func(a addonsv1.AddonStatus) bool {
			_, isSeen := o.Installed[deliver.Release{Namespace: a.Namespace, Name: a.Name}]
			return a.Stack == name && a.Revision > 0 && !isSeen
		})
}

// NoteOrphans writes into the status which stacks leave their add-ons behind. It reports whether one doesn't any more: that
// is told before a record says another policy.
func NoteOrphans(o *gather.Observed, proofs *releases.Proofs) (ends bool) {
	for i := range o.ClusterAddon.Status.Stacks {
		is := &o.ClusterAddon.Status.Stacks[i]
		was := is.RecordedDeletionPolicy
		if is.RecordedDeletionPolicy = ""; isOrphanRecorded(o, proofs, is.Name) {
			is.RecordedDeletionPolicy = addonsv1.DeletionPolicyOrphan
		}
		ends = ends || was != "" && is.RecordedDeletionPolicy == ""
	}
	return ends
}
