// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// awaitAssignments finds the stacks whose assignment is older than what was just written. Somebody may set another class
// and another version of Kubernetes at once, and Cluster API asks before the add-ons of that class are assigned. An
// assignment that doesn't follow, as while a rollout hasn't come so far, is waited for no longer than AssignmentGrace.
func (s *Stacks) awaitAssignments(written []addonsv1.AddonStack, assigned []Stack, cluster *member.Member, since map[string]time.Time, now time.Time) {
	for i := range written {
		if name := written[i].Name; isOutdated(&written[i], assigned, cluster) && s.isGiven(name, AssignmentGrace, since, now) {
			s.Outdated = append(s.Outdated, name)
		}
	}
}

// awaitBack has the add-ons of stacks that left the cluster, and select it again, stay until the assignment has had time to follow.
func (r Reader) awaitBack(ctx context.Context, o *Observed) error {
	for name := range r.leftStacks(o.Installed, o.ClusterAddon.Spec.Stacks) {
		s := &addonsv1.AddonStack{}
		if err := r.Cache.Get(ctx, r.keyOf(name), s); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("reading AddonStack %s: %w", name, err)
		}
		if isOutdated(s, nil, r.Inputs.Values.Cluster) && o.isGiven(name, AssignmentGrace, r.OutdatedSince, r.Now) {
			why := fmt.Sprintf("AddonStack %s selects %s again, and spec.stacks of this ClusterAddon doesn't follow yet", name, r.Inputs.Values.Cluster)
			o.Unresolved[name] = Unresolved{State: decide.Undecided, Why: why, IsNew: true}
		}
	}
	return nil
}

// isOutdated reports whether the assignment of a stack may become another one by what the stack and the cluster are like now.
func isOutdated(written *addonsv1.AddonStack, assigned []Stack, cluster *member.Member) bool {
	at := slices.IndexFunc(assigned, func(a Stack) bool { return a.Name == written.Name })
	switch {
	case !written.DeletionTimestamp.IsZero():
		return false
	case at >= 0:
		a := &assigned[at]
		return a.Spec != nil && (a.Generation < written.Generation || deselects(a.Spec, cluster))
	}
	selects, err := stack.Selects(written.Namespace, &written.Spec, cluster)
	return err == nil && selects
}
