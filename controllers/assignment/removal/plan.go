// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Plan is an assignment of one cluster before it is written.
type Plan struct {
	Cluster      *member.Member
	ClusterAddon *addonsv1.ClusterAddon // with the policies that are written now
	Stored       *addonsv1.ClusterAddon // as it was read
	Candidates   []candidate.Stack
	Wanted       []addonsv1.StackRevision
	Removed      []string      // stacks whose add-ons go
	Again        time.Duration // until removals don't wait any more; 0 if none does
}

// key returns the key of an AddonStack of the cluster's namespace.
func (p *Plan) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: p.ClusterAddon.Namespace, Name: name}
}

// isTold reports whether the cluster has the revision already that the plan gives it.
func (p *Plan) isTold(previous addonsv1.StackRevision) bool {
	return stack.IsAssigned(p.Wanted, previous.Name) && stack.AssignedRevision(p.Wanted, previous.Name) == previous.Revision
}

// keepHeld leaves what is held. Add-ons that their stack has no more stay beside its newest revision; else the whole
// stack stays at the revision that the cluster has.
func (p *Plan) keepHeld(previous addonsv1.StackRevision, held *addonsv1.HeldRemoval) {
	at := slices.IndexFunc(p.Wanted, func(s addonsv1.StackRevision) bool { return s.Name == previous.Name })
	target := candidate.Find(p.Candidates, previous.Name)
	if at < 0 || target == nil || held.Cause != addonsv1.RemovalAddonsDropped || len(held.Addons) == maxHeldAddons || target.HasOneOf(held.Addons) {
		p.keep(previous, held)
		return
	}
	p.Wanted[at].HeldRemoval = held
}

// keep leaves a stack in the assignment as it is, with what is held.
func (p *Plan) keep(previous addonsv1.StackRevision, held *addonsv1.HeldRemoval) {
	previous.HeldRemoval = held
	p.Wanted = slices.DeleteFunc(p.Wanted, func(s addonsv1.StackRevision) bool { return s.Name == previous.Name })
	p.Wanted = append(p.Wanted, previous)
}
