// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// A revision of a stack with a rollout pins the digests of values that add-ons take from ConfigMaps and Secrets. Once these
// are changed in place, nobody has the values of an earlier revision any more, but for the release records on the clusters.

// pinnedSources returns the sources of values that the stack's revision pins, in order.
func (a *addon) pinnedSources() []addonsv1.ValuesReference {
	return slices.DeleteFunc(slices.Clone(a.ValuesFrom), func(ref addonsv1.ValuesReference) bool {
		_, isPinned := a.pinned[stack.ValuesName(ref)]
		return !isPinned || !stack.IsStaged(ref)
	})
}

// inputsDigest identifies the pinned values of an add-on by 16 hex digits, "" if it has none.
func inputsDigest(a *addon) string {
	var digests []string
	for _, ref := range a.pinnedSources() {
		digests = append(digests, stack.ValuesName(ref), a.pinned[stack.ValuesName(ref)])
	}
	if len(digests) == 0 {
		return ""
	}
	return strings.TrimPrefix(hash(digests), "sha256:")[:16]
}

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
func (q inputReader) checkPinned(ctx context.Context, a *addon) error {
	for _, ref := range a.pinnedSources() {
		is, err := q.Values.Digest(ctx, q.ca.Namespace, ref)
		if err != nil {
			return err
		}
		if is != a.pinned[stack.ValuesName(ref)] {
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
