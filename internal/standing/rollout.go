// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Rollout is the rollout of an AddonStack as its objects are.
type Rollout struct {
	Stack     *addonsv1.AddonStack
	Revisions []appsv1.ControllerRevision // the newest first
	Marked    []rollout.Revision
	Target    int // in Revisions, -1 for none
	// Turns are the ClusterAddons that were given a turn, and maybe haven't taken it yet.
	Turns sets.Set[string]

	addons map[string][]addonsv1.Addon // by revision, as far as they were read
}

// RolloutOf returns the rollout of a stack with these revisions, the newest first, before any turn is given.
func RolloutOf(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) *Rollout {
	q := &Rollout{Stack: s, Revisions: revisions, Turns: sets.New[string](), addons: map[string][]addonsv1.Addon{}}
	q.Refresh()
	return q
}

// Refresh looks at the marks of the revisions once more.
func (q *Rollout) Refresh() {
	q.Marked = rollout.Revisions(q.Revisions)
	q.Target = rollout.Target(q.Marked)
}

// Revision returns the name of the target, "" for none.
func (q *Rollout) Revision() string {
	if q.Target < 0 {
		return ""
	}
	return q.Revisions[q.Target].Name
}

// Assigned returns the revision that a cluster is to have now, with the turn that it was given.
func (q *Rollout) Assigned(ca *addonsv1.ClusterAddon) string {
	if q.Turns.Has(ca.Name) {
		return q.Aim(ca)
	}
	return stack.AssignedRevision(ca.Spec.Stacks, q.Stack.Name)
}

// Aim returns the revision that the rollout brings a cluster to, "" for none. If the target was rejected, the clusters that have
// it go back.
func (q *Rollout) Aim(ca *addonsv1.ClusterAddon) string {
	assigned := stack.AssignedRevision(ca.Spec.Stacks, q.Stack.Name)
	switch {
	case q.Target < 0 || !q.Marked[q.Target].Rejected:
		return q.Revision()
	case assigned == q.Revision():
		return rollout.GoesBackTo(q.Marked, q.Target, *stack.StatusOf(&ca.Status, q.Stack.Name))
	}
	return assigned
}

// Addons returns the add-ons of a revision, none if it can't be read.
func (q *Rollout) Addons(revision string) []addonsv1.Addon {
	if _, isRead := q.addons[revision]; !isRead {
		q.addons[revision] = nil
		if spec := stack.SpecAt(q.Revisions, revision); spec != nil {
			q.addons[revision] = spec.Addons
		}
	}
	return q.addons[revision]
}

// Input returns what a decision depends on, for an instance with a watch filter and other instances beside it.
func (q *Rollout) Input(now time.Time, watchFilter string, others []addonsv1.StackInstance, clusters []Cluster) rollout.Input {
	in := rollout.Input{Now: now, Others: others}
	in.Aim(q.Revisions, q.Target, watchFilter)
	if in.Mode == rollout.Returning && in.Returned.IsZero() {
		in.Returned = now.Truncate(time.Second)
	}
	var invalid field.ErrorList
	in.Strategy, invalid = q.strategy()
	closed, until := rollout.Closed(in.Strategy.Windows, now)
	switch goesBack := in.Mode == rollout.Returning || in.Mode == rollout.SteppingBack; {
	case annotations.HasPaused(q.Stack):
		in.Stop = rollout.Stop{Phase: addonsv1.RolloutPaused, Why: "annotation cluster.x-k8s.io/paused of the AddonStack is set"}
	case len(invalid) > 0:
		in.Stop = rollout.Stop{Phase: addonsv1.RolloutPaused, Why: invalid[0].Error()}
	case closed && !goesBack: // who goes back doesn't wait for it
		in.Stop = rollout.Stop{Phase: addonsv1.RolloutWaitingForWindow, Until: until}
	default:
		in.Stop.Until = until
	}
	unfinished := rollout.Unfinished(q.Marked, q.Target)
	for _, each := range clusters {
		c := q.cluster(each)
		c.Unfinished = unfinished.Has(c.Assigned)
		if c.Joined.IsZero() {
			c.Joined = now
		}
		in.Clusters = append(in.Clusters, c)
	}
	return in
}

// strategy returns the strategy of spec.rollout, with the waves that the attempt began with.
func (q *Rollout) strategy() (rollout.Strategy, field.ErrorList) {
	if q.Stack.Spec.Rollout == nil {
		return rollout.AtOnce(), nil
	}
	spec := *q.Stack.Spec.Rollout
	if q.Target >= 0 {
		if attempt := rollout.AttemptOf(&q.Revisions[q.Target]); !attempt.Started.IsZero() {
			spec.Waves = attempt.Waves
		}
	}
	return rollout.StrategyOf(&spec, field.NewPath("spec", "rollout"))
}
