// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// resolution is what the parts of a stack that follow versions come to.
type resolution struct {
	kept      *addonsv1.AddonStackSpec    // as a revision; nil while the spec waits for versions or its bundle
	revisions []appsv1.ControllerRevision // the newest first, with the kept one
	followed  []followed
	bundle    *failure.Error // why the bundle can't be used as the spec says, nil if it can
	polling   bool
	again     time.Duration // until the next reconcile is needed; 0 if none is
}

// followed is a part of a stack that follows versions.
type followed struct {
	stack.Follower
	found pollResult
	pin   stack.Pin // that it is to have; without a version while it waits for its first one
}

// of returns the part of a name, nil if that follows no versions.
func (f *resolution) of(name string) *followed {
	return first(f.followed, func(w *followed) bool { return w.Name == name })
}

// awaits reports whether the spec waits for a source: for a first version, or for its bundle.
func (f *resolution) awaits(name string) bool {
	w := f.of(name)
	return w != nil && w.waits() || name == addonsv1.FollowedSource && f.bundle != nil
}

// waits reports whether the spec waits for any source.
func (f *resolution) waits() bool {
	return f.bundle != nil || slices.ContainsFunc(f.followed, func(w followed) bool { return w.waits() })
}

// hasFailed reports whether the stack itself has a source that failed.
func (f *resolution) hasFailed() bool {
	return f.bundle != nil && f.bundle.Reason != failure.ArtifactPending || slices.ContainsFunc(f.followed, func(w followed) bool { return w.failure() != nil })
}

// pins returns the versions that the parts are to have.
func (f *resolution) pins() stack.Pins {
	pins := stack.Pins{}
	for _, w := range f.followed {
		if !w.waits() {
			pins[w.Name] = w.pin
		}
	}
	return pins
}

func (w *followed) waits() bool { return w.pin.Version == "" }

// available returns a newer version that isn't taken, "" if there is none.
func (w *followed) available() string {
	if w.waits() || !w.Line.Newer(w.found.newest, w.pin.Version) {
		return ""
	}
	return w.found.newest
}

// failure returns why the source couldn't be polled, or why what it has isn't taken; nil if all is well.
func (w *followed) failure() *failure.Error {
	if w.found.err == nil && !w.waits() && w.found.withdrawn == w.pin.Version {
		return failure.New(failure.ArtifactNotFound, "%s isn't published any more. Clusters that have it keep it, but it may not be had again: "+
			"publish a newer version, publish it again with the same content, or change %s so that it doesn't allow it, to go back", w.pin.Version, w.Line)
	}
	return w.found.err
}

// problem returns what is told of a failure: the add-on or the field, and what follows from it.
func (w *followed) problem() string {
	failed := w.failure()
	text := fmt.Sprintf("addons[%s].%s", w.Name, failed)
	switch {
	case w.Bundle != nil:
		text = ofBundle(failed)
	case failed.Field == "":
		text = fmt.Sprintf("Add-on %s: %s", w.Name, failed)
	}
	if !w.waits() {
		text = "Looking for newer versions: " + text
	}
	switch newer := w.available(); {
	case newer == "" || w.found.err == nil:
		return text
	case w.HasFound(w.pin):
		return fmt.Sprintf("%s. So %s isn't taken, it stays at %s", text, newer, w.pin.Version)
	default:
		return fmt.Sprintf("%s. So %s isn't taken, and %s, which the spec named before, hasn't been found good either; clusters keep what they run",
			text, newer, w.pin.Version)
	}
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
		f.followed = append(f.followed, followed{follower, p.results[follower.Name], pins[follower.Name]})
	}
	return f
}
