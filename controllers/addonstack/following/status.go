// SPDX-License-Identifier: Apache-2.0

package following

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Status returns status.following, by what the newest revision pins, which was made at a time. If this reconcile made that
// the newest, its versions are new since now.
func (f *Resolution) Status(s *addonsv1.AddonStack, pins stack.Pins, made metav1.Time, isNew bool, now time.Time) (following []addonsv1.FollowedVersion) {
	for _, w := range f.Followed {
		pin := pins[w.Name]
		if !w.HasFound(pin) {
			continue
		}
		is := addonsv1.FollowedVersion{Addon: w.Name, Version: pin.Version, Available: w.Available()}
		was := versionOf(s.Status.Following, w.Name)
		switch {
		case was != nil && was.Version == pin.Version:
			is.Since = was.Since
			if is.Available == "" && w.Found.Newest == "" && w.Line.Allows(was.Available) && w.Line.Newer(was.Available, pin.Version) {
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

// versionOf returns the entry of an add-on, nil if there is none.
func versionOf(list []addonsv1.FollowedVersion, addon string) *addonsv1.FollowedVersion {
	for i := range list {
		if list[i].Addon == addon {
			return &list[i]
		}
	}
	return nil
}

// Announce sends an event of each part of a stack that has another version now.
func Announce(s *addonsv1.AddonStack, before, after stack.Pins, events report.Events) {
	for _, follower := range stack.Followers(&s.Spec) {
		was, is := before[follower.Name].Version, after[follower.Name].Version
		if was == "" || was == is {
			continue
		}
		name := follower.Name // that of a field isn't capitalized
		if follower.Bundle == nil {
			name = "Add-on " + name
		}
		events.Send(s, corev1.EventTypeNormal, "NewVersion", "Follow", fmt.Sprintf("%s: %s, before %s; it follows %s", name, is, was, follower.Line))
	}
}

// Merge returns status.following of a stack that several instances manage. An instance
// that polled later has seen more: the newer versions stand, unless the spec is another.
func Merge(s, view *addonsv1.AddonStack) []addonsv1.FollowedVersion {
	if s.Status.ObservedGeneration != s.Generation {
		return view.Status.Following
	}
	followers := stack.Followers(&s.Spec)
	ahead := func(line versions.Line, one, than string) bool {
		return line.Newer(one, than) && !line.Newer(than, one)
	}
	var list []addonsv1.FollowedVersion
	for _, own := range view.Status.Following {
		there := versionOf(s.Status.Following, own.Addon)
		at := slices.IndexFunc(followers, func(f stack.Follower) bool { return f.Name == own.Addon })
		switch {
		case there == nil || at < 0:
		case ahead(followers[at].Line, there.Version, own.Version):
			own = *there
		case there.Version == own.Version && ahead(followers[at].Line, there.Available, own.Available):
			own.Available = there.Available
		}
		list = append(list, own)
	}
	return list
}
