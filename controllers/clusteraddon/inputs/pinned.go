// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"errors"
	"fmt"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// CheckPinned fails with InputReplaced if values aren't those that the stack's revision was made with.
func (q Reader) CheckPinned(ctx context.Context, a *wanted.Addon) error {
	for _, ref := range a.PinnedSources() {
		is, err := q.Values.Sources.Digest(ctx, q.ClusterAddon.Namespace, ref)
		if err != nil {
			return err
		}
		if is != a.Pinned[stack.ValuesName(ref)] {
			failed := failure.New(deliver.ReasonInputReplaced, "%s %s, key %q, has changed since the revision was made that the cluster is to have; "+
				"the cluster gets the new values in its turn of the rollout", ref.Kind, q.keyOf(ref.Name), stack.ValuesKey(ref))
			failed.Field = fmt.Sprintf("addons[%s].valuesFrom", a.Name)
			return failed
		}
	}
	return nil
}

// IsReplaced reports whether values aren't those that a revision was made with.
func IsReplaced(err error) bool {
	failed, ok := errors.AsType[*failure.Error](err)
	return ok && failed.Reason == deliver.ReasonInputReplaced
}
