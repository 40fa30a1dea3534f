// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Revisions lists the revisions of a stack, the newest first.
func Revisions(ctx context.Context, from client.Reader, s *addonsv1.AddonStack) ([]appsv1.ControllerRevision, error) {
	all := &appsv1.ControllerRevisionList{}
	if err := from.List(ctx, all, client.InNamespace(s.Namespace), client.MatchingLabels{addonsv1.StackNameLabel: s.Name}); err != nil {
		return nil, fmt.Errorf("listing the revisions of AddonStack %s: %w", s.Name, err)
	}
	return stack.OwnRevisions(s, all.Items), nil
}
