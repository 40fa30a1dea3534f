// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// leftStacks returns the stacks that have add-ons on a cluster and aren't assigned any more, as records that are proven say.
func leftStacks(installed map[deliver.Release]deliver.Summary, proofs *releases.Proofs, assigned []addonsv1.StackRevision) sets.Set[string] {
	left := sets.New[string]()
	for _, record := range installed {
		if stack.Assigned(assigned, record.Stack).Name == "" && proofs.Prove(record) {
			left.Insert(record.Stack)
		}
	}
	return left
}

// paused returns which of the stacks are paused. One that isn't there is so if it was when its add-ons were last looked at: a
// deletion is no wish to go on with what the pause holds up.
func (r stackReader) paused(ctx context.Context, names sets.Set[string], was []addonsv1.AddonStatus) (sets.Set[string], error) {
	paused := sets.New[string]()
	for name := range names {
		s := &addonsv1.AddonStack{}
		err := r.cache.Get(ctx, r.keyOf(name), s)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading AddonStack %s: %w", name, err)
		}
		if annotations.HasPaused(s) || err != nil && hasPaused(name, was) {
			paused.Insert(name)
		}
	}
	return paused, nil
}
