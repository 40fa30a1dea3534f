// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Snapshots are the stacks of namespaces as they were read last: the reconciles of all clusters share them.
//
//   - Key: the namespace.
//   - Bound: those that have stacks; of each stack one decoded spec.
//   - Lost with it: nothing. The stacks are read again.
type Snapshots struct {
	mu          sync.Mutex
	ofNamespace map[string]snapshot
}

// snapshot is what was read of some versions of stacks and revisions.
type snapshot struct {
	versions   uint64
	candidates []Stack
}

var seed = maphash.MakeSeed()

// versionOf returns a sum for a version of an object. Those of several objects can be added in any order.
func versionOf(o metav1.Object) uint64 {
	return maphash.String(seed, string(o.GetUID())+"/"+o.GetResourceVersion())
}

// Read returns a namespace's stacks that aren't being deleted, as they are in force. They aren't to be changed.
func (s *Snapshots) Read(namespace string, stacks []addonsv1.AddonStack, revisions []appsv1.ControllerRevision) ([]Stack, error) {
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
	next := make([]Stack, 0, len(stacks))
	for i := range stacks {
		if !stacks[i].DeletionTimestamp.IsZero() {
			continue
		}
		c, err := newStack(&stacks[i], stack.OwnRevisions(&stacks[i], revisions), Find(before.candidates, stacks[i].Name))
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

// newStack returns a stack with its revisions, the newest first. What a revision keeps never changes: it is taken from before,
// which may be nil, if that is of the same one.
func newStack(s *addonsv1.AddonStack, own []appsv1.ControllerRevision, before *Stack) (Stack, error) {
	c := Stack{Name: s.Name, Made: s.CreationTimestamp.Time, Spec: s.Spec, Generation: s.Generation, Paused: annotations.HasPaused(s), Revisions: own}
	c.Lost = s.Status.LatestRevision != "" && !slices.ContainsFunc(own, func(r appsv1.ControllerRevision) bool { return r.Name == s.Status.LatestRevision })
	if len(own) == 0 {
		return c, nil
	}
	target := 0
	if s.Spec.Rollout != nil {
		c.Steps, target = stepsOf(s, own)
	}
	c.keeps, c.Revision = own[target].UID, own[target].Name
	if before != nil && before.keeps == c.keeps && c.keeps != "" {
		c.Spec, c.unknown = before.Spec, before.unknown
	} else {
		spec, unknown, err := stack.Read(&own[target])
		if err != nil {
			return c, err
		}
		c.Spec, c.unknown = *spec, len(unknown) > 0
	}
	c.Spec.DeletionPolicy, c.Spec.RemovalLimit, c.Spec.AllowedRemovals = s.Spec.DeletionPolicy, s.Spec.RemovalLimit, s.Spec.AllowedRemovals
	if stack.Generation(&own[0]) < s.Generation {
		c.Written = &s.Spec
	}
	c.Lost = c.Lost || c.unknown
	return c, nil
}

// FirstRevision is how long a new stack waits for its first revision, before it is assigned without one.
const FirstRevision = 3 * time.Second

// AtTime returns the stacks with the turns of their rollouts, by stack and revision. If some stacks are new, it returns when to look again.
func AtTime(read []Stack, turns func(name, revision string) sets.Set[string], now time.Time) (all []Stack, again time.Duration) {
	all = slices.Clone(read)
	for i := range all {
		c := &all[i]
		if left := FirstRevision - now.Sub(c.Made); len(c.Revisions) == 0 && !c.Lost && left > 0 {
			c.IsNew, again = true, retry.Sooner(again, left)
		}
		if c.Steps != nil {
			is := *c.Steps
			if is.Now = now; is.Target >= 0 {
				is.Turns = turns(c.Name, c.Revision)
			}
			c.Steps = &is
		}
	}
	return all, again
}
