// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// lateness is how long an assignment may be behind its Cluster, or name a stack that is
// gone, before that is told. It follows a Cluster within milliseconds mostly; of a stack
// that is gone it waits a moment, in case that it comes back.
const lateness = 10 * time.Second

// assigned is what a stack wants of the cluster.
type assigned struct {
	stack string
	spec  *addonsv1.AddonStackSpec
	// behind: the revision no longer selects the Cluster, and the assignment is
	// about to follow. Until then the add-ons are left as they are: made of this
	// revision and the Cluster as it is now, they would be what nobody asked for.
	behind bool
	// coming: as the stack is written now it selects the Cluster, and so it stays
	// assigned until that is in force.
	coming bool
}

// assigned reads the revisions that the cluster is to run. What is not wanted is
// removed, so a stack without a revision that can be read is undecided: what is
// installed of it stays. So is one whose assignment doesn't follow.
func (p *pass) assigned(ctx context.Context) ([]assigned, error) {
	var all []assigned
	p.undecided = map[string]undecided{}
	for _, a := range p.ca.Spec.Stacks {
		written, err := p.written(ctx, a.Name)
		if err != nil {
			return nil, err
		}
		spec, err := p.specOf(ctx, a)
		if err != nil {
			return nil, err
		}
		if a.HeldRemoval != nil {
			p.heldRemovals = append(p.heldRemovals, stack.DescribeHeld(p.ca.Namespace, &a))
			if written == nil || spec == nil || deselects(spec, p.cluster) {
				p.undecided[a.Name] = undecided{why: "The removal of its add-ons is held", keeps: true, quiet: true}
				continue
			}
		}
		if written == nil || spec == nil { // a revision may outlive its stack for a moment
			p.undecide(a, written)
			continue
		}
		one := assigned{stack: a.Name, spec: spec, behind: deselects(spec, p.cluster)}
		one.coming = one.behind && !deselects(&written.Spec, p.cluster)
		all = append(all, one)
	}
	return p.withoutLate(all), nil
}

// specOf the assigned revision, nil if it isn't there (yet): its coming is an event.
func (p *pass) specOf(ctx context.Context, a addonsv1.StackRevision) (*addonsv1.AddonStackSpec, error) {
	if a.Revision == "" {
		return nil, nil
	}
	revision := &appsv1.ControllerRevision{}
	if err := p.Client.Get(ctx, p.keyOf(a.Revision), revision); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading revision of AddonStack %s: %w", a.Name, err)
	}
	return stack.SpecOf(revision)
}

// written is the stack as it is written now, nil if it isn't there for this instance.
func (p *pass) written(ctx context.Context, name string) (*addonsv1.AddonStack, error) {
	s := &addonsv1.AddonStack{}
	if err := p.Client.Get(ctx, p.keyOf(name), s); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("reading AddonStack %s: %w", name, err)
		}
		return nil, nil
	}
	return s, nil
}

// deselects says whether it is certain that the spec doesn't select the Cluster.
func deselects(spec *addonsv1.AddonStackSpec, cluster *clusterv1.Cluster) bool {
	selects, err := stack.Selects(cluster.Namespace, spec, cluster)
	return err == nil && !selects
}

// withoutLate calls stacks undecided that have been behind for too long, and
// returns the others.
func (p *pass) withoutLate(all []assigned) []assigned {
	var behind, gone []string
	for _, a := range all {
		if a.behind {
			behind = append(behind, a.stack)
		}
	}
	for _, a := range p.ca.Spec.Stacks {
		if stack, undecided := p.undecided[a.Name]; undecided && !stack.keeps && a.Revision != "" {
			gone = append(gone, a.Name)
		}
	}
	since := p.lags.update(p.keyOf(p.ca.Name), append(behind, gone...), p.Clock.Now())
	for _, name := range gone {
		if left := lateness - p.Clock.Since(since[name]); left > 0 {
			stack := p.undecided[name]
			stack.quiet, stack.keeps = true, true
			p.undecided[name] = stack
			p.retryIn(left)
		}
	}
	var inTime []assigned
	for _, a := range all {
		left := lateness - p.Clock.Since(since[a.stack])
		if a.behind && left <= 0 {
			p.undecided[a.stack] = undecided{why: a.whyBehind(p.cluster), keeps: true, awaited: true}
			continue
		}
		if a.behind {
			p.retryIn(left)
		}
		inTime = append(inTime, a)
	}
	return inTime
}

// whyBehind says why a stack is assigned whose revision doesn't select the Cluster.
func (a *assigned) whyBehind(cluster *clusterv1.Cluster) string {
	if a.coming {
		return fmt.Sprintf("AddonStack %s selects Cluster %s as it is written now, and that isn't in force yet: see its conditions", a.stack, cluster.Name)
	}
	return fmt.Sprintf("AddonStack %s doesn't select Cluster %s any more, and spec.stacks of this ClusterAddon doesn't follow: "+
		"see the stack's watch label, and the log of the provider instance", a.stack, cluster.Name)
}

// lags remembers since when assignments are behind their Clusters. Losing it makes
// that be told later.
type lags struct {
	mu    sync.Mutex
	since map[client.ObjectKey]map[string]time.Time // by ClusterAddon and stack
}

func newLags() *lags { return &lags{since: map[client.ObjectKey]map[string]time.Time{}} }

// update takes the stacks that are behind now, and returns since when each is.
func (l *lags) update(user client.ObjectKey, stacks []string, now time.Time) map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	former := l.since[user]
	delete(l.since, user)
	if len(stacks) == 0 {
		return nil
	}
	current := map[string]time.Time{}
	for _, name := range stacks {
		if current[name] = now; !former[name].IsZero() {
			current[name] = former[name]
		}
	}
	l.since[user] = current
	return current
}

// forget drops all of a ClusterAddon.
func (l *lags) forget(user client.ObjectKey) { l.update(user, nil, time.Time{}) }
