// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// The versions that a spec follows are resolved here, once for all clusters, and never by the
// clusters. The revision that clusters run has the exact version, and the digest behind it. A newer
// version makes another revision. Versions don't go back by themselves, also if the newest one is
// withdrawn: so it doesn't matter which instance polls when.

// follow finds the versions that the stack is to have.
func (r polling) follow(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (*resolution, error) {
	m, followers, now := r.memoryOf(s), stack.Followers(&s.Spec), r.Clock.Now()
	p := &m.poll
	if len(followers) == 0 {
		*p = versionPoll{}
		return &resolution{}, nil
	}
	kept, err := newestSpec(revisions)
	if err != nil {
		return nil, err
	}
	current := stack.PinsOf(&s.Spec, kept)
	settled := len(current) == len(followers) && stack.Generation(&revisions[0]) == s.Generation &&
		conditions.IsTrue(s, addonsv1.SourcesReadyCondition)
	p.plan(s, trigger{s.Generation, m.request.lookNow, r.keys(ctx, s.Namespace, followers)}, now, settled)
	if p.running && r.poll(ctx, s, followers, current, p) {
		p.finish(s, r.Clock.Now(), resolve(s, followers, current, p).waiting() != nil)
	}
	f := resolve(s, followers, current, p)
	f.again = p.pause(r.Clock.Now())
	return f, nil
}

// keys identifies the credentials and keys that the sources are asked with.
func (r polling) keys(ctx context.Context, namespace string, followers []stack.Follower) string {
	var all []string
	for _, follower := range followers {
		all = append(all, r.Sources.Keys(ctx, referenceOf(namespace, follower)))
	}
	return strings.Join(all, " ")
}

// resolve decides from what the newest revision has, and from what polls found.
func resolve(s *addonsv1.AddonStack, followers []stack.Follower, current stack.Pins, p *versionPoll) *resolution {
	f := &resolution{polling: p.running}
	taken := stack.Pins{}
	for _, follower := range followers {
		found := p.results[follower.Name]
		if pin, pinned := current[follower.Name]; found.pin.Version != "" && (!suspended(s) || !pinned || found.pin.Version == pin.Version) {
			taken[follower.Name] = found.pin
		}
	}
	pins := stack.NewestOf(followers, current, taken)
	for _, follower := range followers {
		f.followed = append(f.followed, followed{follower, p.results[follower.Name], current[follower.Name], pins[follower.Name]})
	}
	return f
}

// revertBundle leaves spec.source at the version of the newest revision, if there is one, as the
// newer version can't be used after all. It reports whether it did. The newer one is tried again.
func (f *resolution) revertBundle(failed *failure.Error) bool {
	w := f.of(addonsv1.FollowedSource)
	if w == nil || w.before.Version == "" || w.pin == w.before {
		return false
	}
	w.found.newest, w.pin = w.pin.Version, w.before
	if failed.Reason == failure.ArtifactPending {
		f.polling, f.again = true, failed.RetryAfter
		return true
	}
	w.found.err = failed
	f.again = retry.Sooner(f.again, max(failed.RetryAfter, retry.Follower))
	return true
}
