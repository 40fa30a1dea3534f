// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// followingOf returns status.following, by what the newest revision pins, which was made at a time. If this reconcile made that
// the newest, its versions are new since now.
func followingOf(
	s *addonsv1.AddonStack, pins stack.Pins, made metav1.Time, isNew bool, f *resolution, now time.Time,
) (following []addonsv1.FollowedVersion) {
	for _, w := range f.followed {
		pin := pins[w.Name]
		if !w.HasFound(pin) {
			continue
		}
		is := addonsv1.FollowedVersion{Addon: w.Name, Version: pin.Version, Available: w.available()}
		was := followedIn(s.Status.Following, w.Name)
		switch {
		case was != nil && was.Version == pin.Version:
			is.Since = was.Since
			if is.Available == "" && w.found.newest == "" && w.Line.Allows(was.Available) && w.Line.Newer(was.Available, pin.Version) {
				is.Available = was.Available // until it is known
			}
		case was != nil || isNew:
			is.Since = metav1.NewTime(now)
		default: // the status was lost
			is.Since = made
		}
		following = append(following, is)
	}
	return following
}

// followedIn returns the entry of an add-on, nil if there is none.
func followedIn(list []addonsv1.FollowedVersion, addon string) *addonsv1.FollowedVersion {
	return first(list, func(v *addonsv1.FollowedVersion) bool { return v.Addon == addon })
}

// announceVersions sends an event of each part that has another version now.
func (r *Reconciler) announceVersions(s *addonsv1.AddonStack, followers []stack.Follower, before, after stack.Pins) {
	for _, follower := range followers {
		was, is := before[follower.Name].Version, after[follower.Name].Version
		if was == "" || was == is {
			continue
		}
		name := follower.Name // that of a field isn't capitalized
		if follower.Bundle == nil {
			name = "Add-on " + name
		}
		r.event(s, corev1.EventTypeNormal, "NewVersion", "Follow", fmt.Sprintf("%s: %s, before %s; it follows %s", name, is, was, follower.Line))
	}
}

// mergeFollowing returns status.following of a stack that several instances manage. An instance
// that polled later has seen more: the newer versions stand, unless the spec is another.
func mergeFollowing(s, view *addonsv1.AddonStack) []addonsv1.FollowedVersion {
	if s.Status.ObservedGeneration != s.Generation {
		return view.Status.Following
	}
	followers := stack.Followers(&s.Spec)
	var list []addonsv1.FollowedVersion
	for _, own := range view.Status.Following {
		there := followedIn(s.Status.Following, own.Addon)
		follower := first(followers, func(f *stack.Follower) bool { return f.Name == own.Addon })
		switch {
		case there == nil || follower == nil:
		case follower.Line.Newer(there.Version, own.Version):
			own = *there
		case there.Version == own.Version && follower.Line.Newer(there.Available, own.Available):
			own.Available = there.Available
		}
		list = append(list, own)
	}
	return list
}
