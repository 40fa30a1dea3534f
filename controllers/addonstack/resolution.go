// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// resolution is what the parts of a stack that follow versions come to.
type resolution struct {
	kept      *addonsv1.AddonStackSpec    // as a revision; nil while the spec waits for versions or its bundle
	revisions []appsv1.ControllerRevision // the newest first, with the kept one
	followers []stack.Follower
	current   stack.Pins // of the newest revision
	pins      stack.Pins
	available map[string]string // newer versions that aren't taken, by follower
	unseen    sets.Set[string]  // followers whose newest version this process doesn't know
	waiting   []stack.Follower  // have no version yet
	failures  []pollFailure
	bundle    *failure.Error // why the bundle can't be had
	polling   bool
	again     time.Duration // until the next reconcile is needed; 0 if none is
}

// pollFailure is why a source couldn't be polled, or what it has not be taken.
type pollFailure struct {
	addon     string // or spec.source: the follower's name
	err       *failure.Error
	withdrawn bool // the version that it has isn't published any more
}

// text names the add-on, or the field.
func (l pollFailure) text() string {
	switch {
	case l.addon == addonsv1.FollowedSource:
		return ofBundle(l.err)
	case l.err.Field == "":
		return fmt.Sprintf("Add-on %s: %s", l.addon, l.err)
	}
	return fmt.Sprintf("addons[%s].%s", l.addon, l.err)
}

// failureOf returns why polling for a follower failed, nil if it didn't.
func (f *resolution) failureOf(name string) *pollFailure {
	return first(f.failures, func(failed *pollFailure) bool { return failed.addon == name })
}

// waitsFor reports whether a follower has no version yet.
func (f *resolution) waitsFor(name string) bool {
	return first(f.waiting, func(w *stack.Follower) bool { return w.Name == name }) != nil
}
