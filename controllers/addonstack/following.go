// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// A range in a spec is resolved here, once for all clusters, and never by them: the
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

// following is what the ranges of a stack come to.
type following struct {
	pins      stack.Pins
	available map[string]string // newer versions that aren't taken, by add-on
	waiting   []*addonsv1.Addon // have no version yet
	failures  []failedLook
	looking   bool
	again     time.Duration // until the next look; 0 if there is none
}

// failedLook is why a source couldn't be looked at, or what it has not be taken.
type failedLook struct {
	addon string
	err   *source.Error
}

// any says whether the stack follows anything.
func (f *following) any() bool { return len(f.pins)+len(f.waiting) > 0 }

// follow finds the versions that the stack's ranges stand for.
func (r *Reconciler) follow(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (*following, error) {
	addons := stack.Followed(&s.Spec)
	if len(addons) == 0 {
		r.outlooks.forget(client.ObjectKeyFromObject(s))
		return &following{}, nil
	}
	current, err := currentPins(s, revisions)
	if err != nil {
		return nil, err
	}
	o := r.outlooks.get(s)
	settled := len(current) == len(addons) && stack.Generation(&revisions[0]) == s.Generation &&
		conditions.IsTrue(s, addonsv1.SourcesReadyCondition)
	o.plan(s, r.Clock.Now(), settled)
	if o.looking {
		ended := r.look(ctx, s, addons, current, o)
		if ended {
			o.finish(s, r.Clock.Now(), len(conclude(s, addons, current, o).waiting) > 0)
		}
	}
	f := conclude(s, addons, current, o)
	f.again = o.again(r.Clock.Now())
	return f, nil
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

// look asks the sources of all add-ons. It says whether all have answered.
func (r *Reconciler) look(ctx context.Context, s *addonsv1.AddonStack, addons []*addonsv1.Addon, current stack.Pins, o *outlook) (ended bool) {
	patience := lookPatience
	if o.asked {
		patience = laterPatience
	}
	o.asked = true
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended = true
	for _, addon := range addons {
		pin, pinned := current[addon.Name]
		found, err := r.find(ctx, source.ChartOf(s.Namespace, addon.Chart), pin, suspended(s) && pinned, o.notBefore)
		var failed *source.Error
		switch {
		case errors.As(err, &failed) && failed.Reason != source.ReasonArtifactPending:
			if found.newest == "" {
				found.newest = o.found[addon.Name].newest
			}
			found.err = failed
		case err != nil: // its request goes on
			ended = false
			continue
		}
		o.found[addon.Name] = found
	}
	return ended
}

// find looks for the newest version of a chart, and whether it can be used, if it is
// to be taken.
func (r *Reconciler) find(ctx context.Context, ref source.Reference, current stack.Pin, keep bool, notBefore time.Time) (finding, error) {
	newest, err := r.Sources.Newest(ctx, ref, notBefore)
	if err != nil {
		return finding{}, err
	}
	found := finding{newest: newest}
	isNew := versions.Newer(newest, current.Version) || newest == current.Version && current.Digest == ""
	if keep || !isNew {
		return found, nil
	}
	digest, err := r.Sources.Pin(ctx, ref, newest)
	if err == nil {
		found.pin = stack.Pin{Version: newest, Digest: digest}
	}
	return found, err
}

// conclude decides, from what the newest revision has and what was found.
func conclude(s *addonsv1.AddonStack, addons []*addonsv1.Addon, current stack.Pins, o *outlook) *following {
	f := &following{pins: stack.Pins{}, available: map[string]string{}, looking: o.looking}
	for _, addon := range addons {
		pin, pinned := current[addon.Name]
		found := o.found[addon.Name]
		if found.pin.Version != "" && (!suspended(s) || !pinned) {
			newer := stack.Pins{addon.Name: pin}.Newest(stack.Pins{addon.Name: found.pin})
			pin, pinned = newer[addon.Name], true
		}
		if found.err != nil {
			f.failures = append(f.failures, failedLook{addon.Name, found.err})
		}
		if !pinned {
			f.waiting = append(f.waiting, addon)
			continue
		}
		f.pins[addon.Name] = pin
		if versions.Newer(found.newest, pin.Version) {
			f.available[addon.Name] = found.newest
		}
	}
	return f
}

func suspended(s *addonsv1.AddonStack) bool {
	return s.Spec.Updates != nil && s.Spec.Updates.Suspend != nil && *s.Spec.Updates.Suspend
}
