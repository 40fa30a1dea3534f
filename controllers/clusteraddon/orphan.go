// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// tellOrphans writes into the records of stacks which leave their add-ons behind that they do. A removal reads it
// there, and the stack may be gone already, with its revision. So this comes first, and the assignment waits for it.
func (q removal) tellOrphans(ctx context.Context) error {
	var failed []error
	for release, record := range q.installed {
		isOrphan := slices.ContainsFunc(q.ca.Spec.Stacks, func(s addonsv1.StackRevision) bool {
			return s.Name == record.Stack && s.DeletionPolicy == addonsv1.DeletionPolicyOrphan
		})
		if !isOrphan || isRemoving(record) || !q.isProven(record) {
			continue
		}
		terms := record.Terms
		terms.DeletionPolicy = addonsv1.DeletionPolicyOrphan
		if err := q.setTerms(ctx, record, terms); err != nil {
			failed = append(failed, fmt.Errorf("writing the deletion policy of add-on %s: %w", record.Name, err))
			continue
		}
		record.Terms = terms
		q.installed[release] = record
	}
	return errors.Join(failed...)
}
