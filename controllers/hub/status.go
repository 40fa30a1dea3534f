// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchStatus writes the status that a reconcile made of an object, in one
// request, and none if it made no difference. An object that is gone is no error.
//
// Cluster API's patch helper takes two requests, conditions first: whoever waits
// for a condition would see it beside an older status.
func PatchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if err := c.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %T %s: %w", after, client.ObjectKeyFromObject(after), err)
	}
	return nil
}
