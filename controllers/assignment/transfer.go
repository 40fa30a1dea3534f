// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// awaitTransfers has a stack stay at its revision on the cluster while an add-on that the next one lacks is about to come
// with another stack. Else the add-on would be uninstalled in between, with its data. It comes with the spec that is
// written now, where no revision keeps that yet, or with a rollout whose turn on the cluster hasn't come.
func awaitTransfers(cluster *member.Member, candidates []candidate, assigned, wanted []addonsv1.StackRevision) {
	for i := range wanted {
		c, previous := find(candidates, wanted[i].Name), stack.AssignedRevision(assigned, wanted[i].Name)
		if c == nil || previous == "" || previous == wanted[i].Revision {
			continue
		}
		coming := sets.New[string]()
		for j := range candidates {
			if to := &candidates[j]; to.name != c.name {
				coming = coming.Union(to.brings(cluster, stack.AssignedRevision(wanted, to.name)))
			}
		}
		if len(coming) > 0 && coming.HasAny(c.dropped(previous, wanted[i].Revision)...) {
			wanted[i].Revision = previous
		}
	}
}

// brings returns the add-ons of the stack's spec that is to be in force on the cluster later, as "namespace/name"; none
// if the cluster has it at that revision.
func (c *candidate) brings(cluster *member.Member, revision string) sets.Set[string] {
	coming := c.written
	if coming == nil && (c.revision == "" || c.revision != revision) {
		coming = &c.spec
	}
	if coming == nil || !selects(coming, cluster) {
		return nil
	}
	return sets.KeySet(stack.Presences(coming.Addons))
}
