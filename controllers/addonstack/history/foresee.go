// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Foresee returns the revision that Keep would make the newest one for the stack, with the spec as the API server would serve it, or
// serves it if that is nil: one of these revisions, or one that isn't there yet. It writes nothing.
func (h History) Foresee(ctx context.Context, s, expanded *addonsv1.AddonStack, served *unstructured.Unstructured, pins stack.Pins, revisions []appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if served == nil {
		var err error
		if served, err = h.served(ctx, s); err != nil {
			return nil, err
		}
	}
	content, err := h.contentOf(ctx, s, expanded, served, pins, h.Values.Digest)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(revisions, func(is appsv1.ControllerRevision) bool { return stack.Keeps(&is, content) }); at >= 0 {
		return &revisions[at], nil
	}
	return stack.Snapshot(s, content, 0), nil
}
