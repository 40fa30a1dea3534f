// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// A revision of a stack with a rollout pins the digests of values that add-ons take from ConfigMaps and Secrets. Once these
// are changed in place, nobody has the values of an earlier revision any more, but for the release records on the clusters.

// maxInputs is how many pinned values a record names that make the same revision of an add-on, as a comment changed alone.
const maxInputs = 8

// withInputs returns what a record says of inputs, with those of one more revision of the stack.
func withInputs(known, pinned string) string {
	all := strings.Split(known, ",")
	switch {
	case known == "":
		return pinned
	case slices.Contains(all, pinned):
		return known
	}
	all = append([]string{pinned}, all...)
	return strings.Join(all[:min(len(all), maxInputs)], ",")
}

// checkPinned fails with InputReplaced if values aren't those that the stack's revision was made with.
func (q inputReader) checkPinned(ctx context.Context, a *wanted.Addon) error {
	for _, ref := range a.PinnedSources() {
		is, err := q.Values.Digest(ctx, q.ca.Namespace, ref)
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

// isReplaced reports whether values aren't those that a revision was made with.
func isReplaced(err error) bool {
	failed, ok := errors.AsType[*failure.Error](err)
	return ok && failed.Reason == deliver.ReasonInputReplaced
}
