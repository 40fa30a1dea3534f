// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// What a spec follows is resolved here, once for all clusters, and never by them: the
// revision that they run has the exact version, and the digest behind it. A newer
// version makes another revision. Versions don't go back by themselves, also if the
// newest one is withdrawn: so it doesn't matter which instance looks when.

const (
	// lookPatience is how long a reconcile waits for sources. Requests go on after it.
	lookPatience = time.Second
	// laterPatience is how long the next ones wait, which only ask whether the answers
	// have come: sources that are slow must not keep the workers from other stacks.
	laterPatience = 20 * time.Millisecond
)

// following is what the parts of a stack that follow versions come to.
type following struct {
	followers []stack.Follower
	current   stack.Pins // of the newest revision
	pins      stack.Pins
	available map[string]string // newer versions that aren't taken, by follower
	unseen    sets.Set[string]  // followers whose newest version this process doesn't know
	waiting   []stack.Follower  // have no version yet
	failures  []failedLook
	bundle    *failure.Error // why the bundle can't be had
	looking   bool
	again     time.Duration // until the next look; 0 if there is none
}

// failedLook is why a source couldn't be looked at, or what it has not be taken.
type failedLook struct {
	addon     string // or spec.source: the follower's name
	err       *failure.Error
	withdrawn bool // the version that it has isn't published any more
}

// text names the add-on, or the field.
func (l failedLook) text() string {
	switch {
	case l.addon == addonsv1.FollowedSource:
		return ofBundle(l.err)
	case l.err.Field == "":
		return fmt.Sprintf("Add-on %s: %s", l.addon, l.err)
	}
	return fmt.Sprintf("addons[%s].%s", l.addon, l.err)
}

// hasFailed says whether the last look for versions of an add-on failed.
func (f *following) hasFailed(addon string) bool {
	return slices.ContainsFunc(f.failures, func(failed failedLook) bool { return failed.addon == addon })
}

// any says whether the stack follows anything.
func (f *following) any() bool { return len(f.followers) > 0 }

// waitsFor says whether a follower has no version yet.
func (f *following) waitsFor(name string) bool {
	return slices.ContainsFunc(f.waiting, func(w stack.Follower) bool { return w.Name == name })
}

// follow finds the versions that the stack is to have.
func (r *Reconciler) follow(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (*following, error) {
	followers := stack.Followers(&s.Spec)
	if len(followers) == 0 {
		r.outlooks.forget(client.ObjectKeyFromObject(s))
		return &following{}, nil
	}
	current, err := currentPins(s, revisions)
	if err != nil {
		return nil, err
	}
	settled := len(current) == len(followers) && stack.Generation(&revisions[0]) == s.Generation &&
		conditions.IsTrue(s, addonsv1.SourcesReadyCondition)
	o := r.outlooks.plan(s, r.keys(ctx, s.Namespace, followers), r.Clock.Now(), settled)
	if o.looking {
		ended := r.look(ctx, s, followers, current, o)
		if ended {
			o.finish(s, r.Clock.Now(), len(conclude(s, followers, current, o).waiting) > 0)
		}
	}
	f := conclude(s, followers, current, o)
	f.again = o.again(r.Clock.Now())
	return f, nil
}

// keys identify the credentials and keys that the sources are asked with.
func (r *Reconciler) keys(ctx context.Context, namespace string, followers []stack.Follower) string {
	var all []string
	for _, follower := range followers {
		all = append(all, r.Sources.Keys(ctx, referenceOf(namespace, follower)))
	}
	return strings.Join(all, " ")
}

// currentPins are those of the newest revision.
func currentPins(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (stack.Pins, error) {
	if len(revisions) == 0 {
		return nil, nil
	}
	kept, err := stack.SpecOf(&revisions[0])
	if err != nil {
		return nil, err
	}
	return stack.PinsOf(&s.Spec, kept), nil
}

// conclude decides, from what the newest revision has and what was found.
func conclude(s *addonsv1.AddonStack, followers []stack.Follower, current stack.Pins, o *outlook) *following {
	f := &following{followers: followers, current: current, available: map[string]string{}, unseen: sets.New[string](), looking: o.looking}
	taken := stack.Pins{}
	for _, follower := range followers {
		found := o.found[follower.Name]
		if pin, pinned := current[follower.Name]; found.pin.Version != "" && (!suspended(s) || !pinned || found.pin.Version == pin.Version) {
			taken[follower.Name] = found.pin
		}
		if found.err != nil {
			f.failures = append(f.failures, failedLook{addon: follower.Name, err: found.err})
		}
		if found.newest == "" {
			f.unseen.Insert(follower.Name)
		}
	}
	f.pins = stack.NewestOf(followers, current, taken)
	for _, follower := range followers {
		pin, pinned := f.pins[follower.Name]
		if !pinned {
			f.waiting = append(f.waiting, follower)
		} else if newest := o.found[follower.Name].newest; follower.Line.Newer(newest, pin.Version) {
			f.available[follower.Name] = newest
		}
		if withdrawn := o.found[follower.Name].withdrawn; pinned && withdrawn == pin.Version && !f.hasFailed(follower.Name) {
			f.failures = append(f.failures, failedLook{addon: follower.Name, err: isWithdrawn(follower, withdrawn), withdrawn: true})
		}
	}
	return f
}

// stepBack leaves spec.source at the version of the newest revision, as the newer one
// can't be used after all; false if there is no such version. It is tried again.
func (f *following) stepBack(failed *failure.Error) bool {
	const name = addonsv1.FollowedSource
	pin, pinned := f.current[name]
	if !pinned || f.pins[name] == pin {
		return false
	}
	f.available[name], f.pins[name] = f.pins[name].Version, pin
	if failed.Reason == failure.ArtifactPending {
		f.looking, f.again = true, failed.RetryAfter
		return true
	}
	f.failures = append(f.failures, failedLook{addon: name, err: failed})
	f.again = sooner(f.again, max(failed.RetryAfter, followingRetry))
	return true
}

func suspended(s *addonsv1.AddonStack) bool {
	return s.Spec.Updates != nil && s.Spec.Updates.Suspend != nil && *s.Spec.Updates.Suspend
}
