// SPDX-License-Identifier: Apache-2.0

package following

import (
	"fmt"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Resolution has the versions of the parts of a stack that follow some.
type Resolution struct {
	Followed []Followed
	Bundle   *failure.Error // why the bundle can't be used as the spec says, nil if it can
	Polling  bool
	Again    time.Duration // until the next reconcile is needed; 0 if none is
}

// Followed is a part of a stack that follows versions.
type Followed struct {
	stack.Follower
	Found Found
	Pin   stack.Pin // that it is to have; without a version while it waits for its first one
}

// Of returns the part of a name, nil if that follows no versions.
func (f *Resolution) Of(name string) *Followed {
	for i := range f.Followed {
		if f.Followed[i].Name == name {
			return &f.Followed[i]
		}
	}
	return nil
}

// Awaits reports whether the spec waits for a source: for a first version, or for its bundle.
func (f *Resolution) Awaits(name string) bool {
	w := f.Of(name)
	return w != nil && w.Waits() || name == addonsv1.FollowedSource && f.Bundle != nil
}

// Waits reports whether the spec waits for any source.
func (f *Resolution) Waits() bool {
	return f.Bundle != nil || slices.ContainsFunc(f.Followed, func(w Followed) bool { return w.Waits() })
}

// HasFailed reports whether the stack itself has a source that failed.
func (f *Resolution) HasFailed() bool {
	return f.Bundle != nil && f.Bundle.Reason != failure.ArtifactPending || slices.ContainsFunc(f.Followed, func(w Followed) bool { return w.Failure() != nil })
}

// Pins returns the versions that the parts are to have.
func (f *Resolution) Pins() stack.Pins {
	pins := stack.Pins{}
	for _, w := range f.Followed {
		if !w.Waits() {
			pins[w.Name] = w.Pin
		}
	}
	return pins
}

// Waits reports whether the part has no version yet.
func (w *Followed) Waits() bool { return w.Pin.Version == "" }

// Available returns a newer version that isn't taken, "" if there is none.
func (w *Followed) Available() string {
	if w.Waits() || !w.Line.Newer(w.Found.Newest, w.Pin.Version) {
		return ""
	}
	return w.Found.Newest
}

// Failure returns why the source couldn't be polled, or why what it has isn't taken; nil if all is well.
func (w *Followed) Failure() *failure.Error {
	if w.Found.Err == nil && !w.Waits() && w.Found.Withdrawn == w.Pin.Version {
		return failure.New(failure.ArtifactNotFound, "%s isn't published any more. Clusters that have it keep it, but it may not be had again: "+
			"publish a newer version, publish it again with the same content, or change %s so that it doesn't allow it, to go back", w.Pin.Version, w.Line)
	}
	return w.Found.Err
}

// Problem returns the message of a failure: the add-on or the field, and what follows from it.
func (w *Followed) Problem() string {
	failed := w.Failure()
	text := fmt.Sprintf("addons[%s].%s", w.Name, failed)
	switch {
	case w.Bundle != nil:
		text = OfBundle(failed)
	case failed.Field == "":
		text = fmt.Sprintf("Add-on %s: %s", w.Name, failed)
	}
	if !w.Waits() {
		text = "Looking for newer versions: " + text
	}
	switch newer := w.Available(); {
	case newer == "" || w.Found.Err == nil:
		return text
	case w.HasFound(w.Pin):
		return fmt.Sprintf("%s. So %s isn't taken, it stays at %s", text, newer, w.Pin.Version)
	default:
		return fmt.Sprintf("%s. Version %s wasn't accepted. The previous version %s couldn't be checked. Clusters stay unchanged",
			text, newer, w.Pin.Version)
	}
}

// Resolve decides from what the newest revision has, and from what polls found.
func Resolve(s *addonsv1.AddonStack, followers []stack.Follower, current stack.Pins, p *Poll) *Resolution {
	f := &Resolution{Polling: p.Running}
	taken := stack.Pins{}
	for _, follower := range followers {
		found := p.Results[follower.Name]
		if pin, pinned := current[follower.Name]; found.Pin.Version != "" && (!isSuspended(s) || !pinned || found.Pin.Version == pin.Version) {
			taken[follower.Name] = found.Pin
		}
	}
	pins := stack.NewestOf(followers, current, taken)
	for _, follower := range followers {
		f.Followed = append(f.Followed, Followed{follower, p.Results[follower.Name], pins[follower.Name]})
	}
	return f
}

// isSuspended reports whether newer versions are only reported, and not taken.
func isSuspended(s *addonsv1.AddonStack) bool {
	return s.Spec.Updates != nil && s.Spec.Updates.Suspend != nil && *s.Spec.Updates.Suspend
}
