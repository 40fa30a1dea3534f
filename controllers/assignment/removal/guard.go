// SPDX-License-Identifier: Apache-2.0

// Package removal holds changes back that would take add-ons away from too many clusters at once.
package removal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Guard limits how many clusters of a stack lose add-ons at once.
type Guard struct {
	client        client.Reader // of the cache
	members       *member.Inventory
	missing       *missing.Stacks
	clock         clock.Clock
	removals      removals
	confirmations confirmations
}

// NewGuard returns a guard that has seen no removal yet.
func NewGuard(client client.Reader, members *member.Inventory, missing *missing.Stacks, clock clock.Clock) *Guard {
	return &Guard{
		client: client, members: members, missing: missing, clock: clock,
		removals: removals{cache.NewExpiringWithClock(clock)}, confirmations: confirmations{known: cache.NewExpiringWithClock(clock)},
	}
}

// Hold takes out of the plan the removals that would take add-ons away from too many clusters at once, and aren't
// confirmed. A removal that isn't held counts towards the limit. A stack that stays as it is may lack an add-on that its newest
// revision would have had, so that another stack loses it: so the others are looked at again until no more stays.
func (g *Guard) Hold(ctx context.Context, p *Plan) error {
	undecided, gone := slices.Clone(p.ClusterAddon.Spec.Stacks), []string(nil)
	for more := true; more; {
		lost := p.Losses()
		before := undecided
		undecided, gone = nil, nil
		for _, previous := range before {
			its := lost[previous.Name]
			if p.isTold(previous) && previous.HeldRemoval == nil { // the cluster was told to remove the others when that was allowed
				its = slices.DeleteFunc(its, func(release string) bool { return !slices.Contains(previous.MovedAddons, release) })
			}
			stays, err := g.stays(ctx, p, previous, its)
			switch {
			case err != nil:
				return err
			case stays:
				continue
			case len(its) > 0 && previous.DeletionPolicy != addonsv1.DeletionPolicyOrphan: // else nothing is uninstalled
				gone = append(gone, previous.Name)
			}
			undecided = append(undecided, previous)
		}
		more = len(undecided) < len(before)
	}
	for _, name := range gone {
		g.letGo(p, name)
	}
	candidate.MoveAddons(p.Cluster, p.Candidates, p.ClusterAddon.Spec.Stacks, p.Wanted) // what is kept may be another stack's by now
	return nil
}

// stays keeps a stack in the plan, or some of its add-ons, if these mustn't go now, and reports whether it did.
func (g *Guard) stays(ctx context.Context, p *Plan, previous addonsv1.StackRevision, lost []string) (bool, error) {
	if wait := g.awaitsRequest(p, previous, lost); wait > 0 {
		previous.RemovalLimit = stack.Assigned(p.Stored.Spec.Stacks, previous.Name).RemovalLimit // another one is looked at then
		p.keep(previous, previous.HeldRemoval)
		p.Again = retry.Sooner(p.Again, wait)
		return true, nil
	}
	switch {
	case candidate.IsUnreported(p.ClusterAddon, g.clock.Now()) && p.drops(previous):
		p.keep(previous, previous.HeldRemoval) // until it says what the cluster runs: that counts
		return true, nil
	case len(lost) == 0:
		return false, nil
	case !stack.IsAssigned(p.Wanted, previous.Name) && candidate.AreAwaited(p.Cluster, p.Candidates, p.Wanted, lost):
		p.keep(previous, previous.HeldRemoval) // until the other stack has them
		return true, nil
	case previous.DeletionPolicy == addonsv1.DeletionPolicyOrphan && !stack.LeavesAddons(p.ClusterAddon, previous.Name):
		if candidate.Find(p.Candidates, previous.Name) == nil {
			previous.Paused = nil // without its stack it can't be resumed
		}
		p.keep(previous, previous.HeldRemoval) // until its records say so: the removal will go by them
		return true, nil
	case previous.DeletionPolicy == addonsv1.DeletionPolicyOrphan: // nothing is uninstalled
		return false, nil
	}
	held, err := g.held(ctx, p, previous, lost)
	if err != nil || held == nil {
		return false, err
	}
	if !p.isTold(previous) && len(held.Addons) < len(lost) {
		g.letGo(p, previous.Name) // the others
	}
	p.keepHeld(previous, held)
	return true, nil
}

// letGo counts a removal.
func (g *Guard) letGo(p *Plan, name string) {
	p.Removed = append(p.Removed, name)
	g.removals.add(p.key(name), p.ClusterAddon.Name)
}

// awaitsRequest returns for how long removals of an entry wait for another request: kubectl apply moves an add-on with two.
// A removal that was confirmed doesn't wait.
func (g *Guard) awaitsRequest(p *Plan, previous addonsv1.StackRevision, lost []string) time.Duration {
	if candidate.Find(p.Candidates, previous.Name) == nil || len(confirmationsOf(p.ClusterAddon)) > 0 || len(lost) == 0 && !p.drops(previous) {
		return 0
	}
	var changed time.Time
	for i := range p.Candidates { // of moved add-ons, also the stack that was to have them
		if name := p.Candidates[i].Name; name == previous.Name || len(previous.MovedAddons) > 0 {
			changed = slices.MaxFunc([]time.Time{changed, g.missing.Changed(p.key(name))}, time.Time.Compare)
		}
	}
	return max(0, missing.DeletionGrace-g.clock.Since(changed))
}

// held returns what of one stack is held on the cluster, nil for nothing. A change that is held stays so until it is
// confirmed, the limit is another one, or another change comes in its place.
func (g *Guard) held(ctx context.Context, p *Plan, previous addonsv1.StackRevision, lost []string) (*addonsv1.HeldRemoval, error) {
	key, target := p.key(previous.Name), candidate.Find(p.Candidates, previous.Name)
	lost = slices.Sorted(slices.Values(p.Unallowed(target, lost)))
	change, cause := changeOf(key, previous.Revision, target, p.Wanted)
	is := &addonsv1.HeldRemoval{Cause: cause}
	isHeld := previous.HeldRemoval != nil && isOf(previous.HeldRemoval.Confirmation, change)
	if isHeld {
		is.Confirmation = previous.HeldRemoval.Confirmation
		if p.isTold(previous) { // the rest was let go
			lost = slices.DeleteFunc(lost, func(release string) bool {
				return !slices.Contains(previous.HeldRemoval.Addons, release) && !slices.Contains(previous.MovedAddons, release)
			})
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	is.Addons = lost[:min(len(lost), maxHeldAddons)]
	if isHeld && confirmationsOf(p.ClusterAddon).Has(is.Confirmation) {
		g.confirmations.spend(change)
		return nil, nil
	}
	if isHeld && equality.Semantic.DeepEqual(stack.Assigned(p.Stored.Spec.Stacks, previous.Name).RemovalLimit, previous.RemovalLimit) {
		return is, nil
	}
	cas := &addonsv1.ClusterAddonList{}
	if err := g.client.List(ctx, cas, client.InNamespace(p.ClusterAddon.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", p.ClusterAddon.Namespace, err)
	}
	if isPaused := target == nil && ptr.Deref(previous.Paused, false); !isPaused && !g.missing.IsDeletedWithParent(key) {
		limit := previous.RemovalLimit
		if target != nil {
			limit = target.Spec.RemovalLimit
		}
		if exceeds, err := g.exceeds(ctx, p, previous.Name, limit, cas.Items); err != nil || !exceeds {
			return nil, err
		}
	}
	if is.Confirmation = g.confirmations.of(change, cas.Items); confirmationsOf(p.ClusterAddon).Has(is.Confirmation) {
		return nil, nil
	}
	return is, nil
}

// maxHeldAddons is how many add-ons a held removal names (heldRemoval.addons, MaxItems).
const maxHeldAddons = 64
