// SPDX-License-Identifier: Apache-2.0

// Package following finds the versions that the parts of an AddonStack follow, and reads its bundle.
package following

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// The versions that a spec follows are resolved here, once for all clusters, and never by the
// clusters. The revision that clusters run has the exact version, and the digest behind it. A newer
// version makes another revision. Versions don't go back by themselves, also if the newest one is
// withdrawn: so it doesn't matter which instance polls when.

// Finder asks sources for newer versions.
type Finder struct {
	Bundles
	Clock clock.PassiveClock
}

// Follow finds the versions that the stack is to have. A user may have asked for a look now, by a value of the annotation.
func (r Finder) Follow(ctx context.Context, s *addonsv1.AddonStack, p *Poll, lookNow string, revisions []appsv1.ControllerRevision) (*Resolution, error) {
	followers, now := stack.Followers(&s.Spec), r.Clock.Now()
	if len(followers) == 0 {
		*p = Poll{}
		return &Resolution{}, nil
	}
	kept, err := stack.NewestSpec(revisions)
	if err != nil {
		return nil, err
	}
	current := stack.PinsOf(&s.Spec, kept)
	settled := len(current) == len(followers) && !slices.ContainsFunc(followers, stack.Follower.IsWatched) && stack.Generation(&revisions[0]) == s.Generation &&
		conditions.IsTrue(s, addonsv1.SourcesReadyCondition)
	p.Source = referenceOf(s.Namespace, followers[0]).Source()
	p.Plan(s, Trigger{s.Generation, lookNow, r.keys(ctx, s.Namespace, followers)}, now, settled)
	if p.Running && r.poll(ctx, s, followers, current, p) {
		p.Finish(s, r.Clock.Now(), Resolve(s, followers, current, p).Waits())
	}
	f := Resolve(s, followers, current, p)
	f.Again = p.Pause(r.Clock.Now())
	return f, nil
}

// keys identifies the credentials and keys that the sources are asked with.
func (r Finder) keys(ctx context.Context, namespace string, followers []stack.Follower) string {
	var all []string
	for _, follower := range followers {
		all = append(all, r.Sources.Keys(ctx, referenceOf(namespace, follower)))
	}
	return strings.Join(all, " ")
}

// poll asks the sources that haven't answered yet, and reports whether all have. How long it
// waits for slow ones is up to ctx; see [source.Sources.Waiting].
func (r Finder) poll(ctx context.Context, s *addonsv1.AddonStack, followers []stack.Follower, current stack.Pins, p *Poll) (ended bool) {
	for _, follower := range followers {
		if p.Answered.Has(follower.Name) {
			continue
		}
		result, err := r.pollOne(ctx, s, follower, current[follower.Name], p)
		failed, ok := errors.AsType[*failure.Error](err)
		switch {
		case ok && failed.Reason != failure.ArtifactPending && !failed.Again:
			result.Newest = cmp.Or(result.Newest, p.Results[follower.Name].Newest)
			result.Err = failed
		case err != nil: // its request continues
			continue
		}
		p.Results[follower.Name] = result
		p.Answered.Insert(follower.Name)
	}
	return p.Answered.Len() == len(followers)
}

// pollOne finds the newest version that a follower may have, and whether it can be used.
func (r Finder) pollOne(ctx context.Context, s *addonsv1.AddonStack, follower stack.Follower, pin stack.Pin, p *Poll) (Found, error) {
	ref := referenceOf(s.Namespace, follower)
	newest, err := r.Sources.Newest(ctx, ref, follower.Line, p.NotBefore)
	if err != nil {
		return Found{}, err
	}
	result := Found{Newest: newest}
	if isSuspended(s) && pin.Version != "" || !follower.IsNewer(newest, pin) {
		withdrawn, err := r.withdrawn(ctx, ref, follower.Line, pin.Version, p)
		if withdrawn {
			result.Withdrawn = pin.Version
		}
		if withdrawn || err != nil {
			return result, err
		}
		result.Pin, err = r.pinNamed(ctx, ref, follower, pin, p)
		return result, err
	}
	taken := stack.Pin{Version: newest}
	if taken.Digest, err = r.Sources.Pin(ctx, ref, newest, p.NotBefore); err != nil {
		var pending error
		if result.Pin, pending = r.pinNamed(ctx, ref, follower, pin, p); pending != nil {
			err = pending
		}
		return result, err
	}
	if follower.Bundle != nil {
		if err := r.tryBundle(ctx, s, taken); err != nil {
			return result, err
		}
	}
	result.Pin = taken
	return result, nil
}

// pinNamed pins the version that the spec named before it had a range. It returns no pin if that
// version can't be used. An error says that the request continues.
func (r Finder) pinNamed(ctx context.Context, ref reference.Reference, follower stack.Follower, pin stack.Pin, p *Poll) (stack.Pin, error) {
	if pin.Version == "" || follower.HasFound(pin) {
		return stack.Pin{}, nil
	}
	digest, err := r.Sources.Pin(ctx, ref, pin.Version, p.NotBefore)
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason != failure.ArtifactPending {
		return stack.Pin{}, nil
	}
	if err != nil {
		return stack.Pin{}, err
	}
	return stack.Pin{Version: pin.Version, Digest: digest}, nil
}

// withdrawn reports whether a version that was taken isn't published any more. Another instance
// may know a newer list, so the list is asked for again before it reports so.
func (r Finder) withdrawn(ctx context.Context, ref reference.Reference, line versions.Line, version string, p *Poll) (bool, error) {
	withdrawn, err := r.Sources.Withdrawn(ctx, ref, line, version, p.NotBefore)
	if err != nil || !withdrawn {
		return false, err
	}
	return r.Sources.Withdrawn(ctx, ref, line, version, p.Begun)
}

// referenceOf returns where a follower's versions are.
func referenceOf(namespace string, follower stack.Follower) reference.Reference {
	if follower.Bundle != nil {
		return reference.BundleOf(namespace, follower.Bundle)
	}
	return reference.AddonOf(namespace, follower.Addon, nil)
}
