// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// firstRevision is how long a new stack waits for its first revision, before it is assigned without one.
const firstRevision = 3 * time.Second

// candidates returns the namespace's stacks, which are only read. A stack that is being deleted is no candidate. If some are new,
// it returns when to look again.
func (r *Reconciler) candidates(ctx context.Context, namespace string) (all []candidate, again time.Duration, err error) {
	stacks := &addonsv1.AddonStackList{}
	if err := r.Client.List(ctx, stacks, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing AddonStacks of namespace %s: %w", namespace, err)
	}
	revisions := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, revisions, client.InNamespace(namespace), client.HasLabels{addonsv1.StackNameLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing ControllerRevisions of namespace %s: %w", namespace, err)
	}
	known, err := r.stacks.read(namespace, stacks.Items, revisions.Items)
	if err != nil {
		return nil, 0, err
	}
	all = slices.Clone(known)
	now := r.Clock.Now()
	for i := range all {
		c := &all[i]
		if left := firstRevision - now.Sub(c.made); len(c.revisions) == 0 && !c.lost && left > 0 {
			c.isNew, again = true, retry.Sooner(again, left)
		}
		if c.steps != nil {
			is := *c.steps
			if is.now = now; is.target >= 0 {
				is.turns = r.Turns.To(stackKey(namespace, c.name), c.revision)
			}
			c.steps = &is
		}
	}
	return all, again, nil
}

// snapshots are the stacks of namespaces as they were read last: the reconciles of all clusters share them.
//
//   - Key: the namespace.
//   - Bound: those that have stacks; of each stack one decoded spec.
//   - Lost with it: nothing. The stacks are read again.
type snapshots struct {
	mu          sync.Mutex
	ofNamespace map[string]snapshot
}

// snapshot is what was read of some versions of stacks and revisions.
type snapshot struct {
	versions   uint64
	candidates []candidate
}

var seed = maphash.MakeSeed()

// versionOf returns a sum for a version of an object. Those of several objects can be added in any order.
func versionOf(o client.Object) uint64 {
	return maphash.String(seed, string(o.GetUID())+"/"+o.GetResourceVersion())
}

func (s *snapshots) read(namespace string, stacks []addonsv1.AddonStack, revisions []appsv1.ControllerRevision) ([]candidate, error) {
	var versions uint64
	for i := range stacks {
		versions += versionOf(&stacks[i])
	}
	for i := range revisions {
		versions += versionOf(&revisions[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.ofNamespace[namespace]
	if before.versions == versions {
		return before.candidates, nil
	}
	next := make([]candidate, 0, len(stacks))
	for i := range stacks {
		if !stacks[i].DeletionTimestamp.IsZero() {
			continue
		}
		c, err := newCandidate(&stacks[i], stack.OwnRevisions(&stacks[i], revisions), find(before.candidates, stacks[i].Name))
		if err != nil {
			return nil, err
		}
		next = append(next, c)
	}
	if s.ofNamespace == nil {
		s.ofNamespace = map[string]snapshot{}
	}
	if s.ofNamespace[namespace] = (snapshot{versions, next}); len(next) == 0 {
		delete(s.ofNamespace, namespace)
	}
	return next, nil
}

// newCandidate returns a stack with its revisions, the newest first. What a revision keeps never changes: it is taken from before,
// which may be nil, if that is of the same one.
func newCandidate(s *addonsv1.AddonStack, own []appsv1.ControllerRevision, before *candidate) (candidate, error) {
	c := candidate{name: s.Name, made: s.CreationTimestamp.Time, spec: s.Spec, generation: s.Generation, paused: annotations.HasPaused(s), revisions: own}
	c.lost = s.Status.LatestRevision != "" && !slices.ContainsFunc(own, func(r appsv1.ControllerRevision) bool { return r.Name == s.Status.LatestRevision })
	if len(own) == 0 {
		return c, nil
	}
	target := 0
	if s.Spec.Rollout != nil {
		c.steps, target = stepsOf(s, own)
	}
	c.keeps, c.revision = own[target].UID, own[target].Name
	if before != nil && before.keeps == c.keeps && c.keeps != "" {
		c.spec, c.unknown = before.spec, before.unknown
	} else {
		spec, unknown, err := stack.Read(&own[target])
		if err != nil {
			return c, err
		}
		c.spec, c.unknown = *spec, len(unknown) > 0
	}
	c.spec.DeletionPolicy, c.spec.RemovalLimit, c.spec.AllowedRemovals = s.Spec.DeletionPolicy, s.Spec.RemovalLimit, s.Spec.AllowedRemovals
	if stack.Generation(&own[0]) < s.Generation {
		c.written = &s.Spec
	}
	c.lost = c.lost || c.unknown
	return c, nil
}
