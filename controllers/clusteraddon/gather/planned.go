// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// Planned returns the stacks that the cluster is to run, with a planned revision in its place, which it writes into the spec.
func (r Reader) Planned(ctx context.Context, ca *addonsv1.ClusterAddon, of plan.Request) ([]Stack, error) {
	name := of.Stack
	at := slices.IndexFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == name })
	switch {
	case at < 0 && of.Spec != nil:
		at, ca.Spec.Stacks = len(ca.Spec.Stacks), append(ca.Spec.Stacks, addonsv1.StackRevision{Name: name})
	case at >= 0 && of.Spec == nil:
		ca.Spec.Stacks = slices.Delete(ca.Spec.Stacks, at, at+1)
	}
	assigned, err := r.Stacks(ctx, ca.Spec.Stacks)
	if err != nil || of.Spec == nil {
		return assigned, err
	}
	is := &assigned[at]
	is.Revision, is.DeletionPolicy, is.HeldRemoval = of.Revision, of.Spec.DeletionPolicy, nil
	is.Spec, is.Pinned, is.Unknown = of.Spec, of.Inputs, nil
	is.Written = cmp.Or(is.Written, &addonsv1.AddonStack{})
	is.Written.Spec, ca.Spec.Stacks[at] = *of.Spec, is.StackRevision
	return assigned, nil
}
