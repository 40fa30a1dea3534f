// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// reportSources writes the SourcesReady condition, and an event when a look fails.
func (r *Reconciler) reportSources(s *addonsv1.AddonStack, f *following) {
	if !f.any() {
		return // the condition goes once the spec is kept
	}
	before := conditions.Get(s, addonsv1.SourcesReadyCondition)
	if before != nil && before.Status == metav1.ConditionFalse && f.looking && len(f.waiting) == 0 && len(f.failures) == 0 {
		return // nobody knows better yet
	}
	c := sourcesReady(f)
	o := r.outlooks.get(s)
	if len(f.failures) > 0 && c.Message != o.told && (before == nil || before.Message != c.Message) {
		o.told = c.Message
		r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, f.failures[0].err.Reason, "Follow", "%s", c.Message)
	}
	conditions.Set(s, c)
}

func sourcesReady(f *following) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.SourcesReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.SourcesReadyReason}
	var texts []string
	for _, failed := range f.failures {
		text := fmt.Sprintf("Add-on %s: %s", failed.addon, shorten(failed.err.Error()))
		if version, refused := f.available[failed.addon]; refused {
			text += fmt.Sprintf(". So %s isn't taken, it stays at %s", version, f.pins[failed.addon].Version)
		}
		texts = append(texts, text)
	}
	switch {
	case len(f.waiting) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, addonsv1.SourcesPendingReason
		if c.Message = "The spec waits for its sources. " + firstOf(texts); len(texts) == 0 {
			addon := f.waiting[0]
			c.Message = fmt.Sprintf("Looking for the newest version of add-on %s that %s allows", addon.Name, addon.Chart.Version)
		}
	case len(texts) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, f.failures[0].err.Reason, firstOf(texts)
	}
	return c
}

// reportFollowing writes status.following, by the newest revision. Kept says that
// this reconcile made it the newest.
func (r *Reconciler) reportFollowing(s *addonsv1.AddonStack, newest *appsv1.ControllerRevision, kept bool, f *following) error {
	spec, err := stack.SpecOf(newest)
	if err != nil {
		return err
	}
	pins := stack.PinsOf(&s.Spec, spec)
	before := s.Status.Following
	s.Status.Following = nil
	for _, addon := range stack.Followed(&s.Spec) {
		pin, pinned := pins[addon.Name]
		if !pinned {
			continue
		}
		now := addonsv1.FollowedVersion{Addon: addon.Name, Version: pin.Version, Available: f.available[addon.Name]}
		was := followedIn(before, addon.Name)
		switch {
		case was != nil && was.Version == pin.Version:
			now.Since = was.Since
			if now.Available == "" && f.looking {
				now.Available = was.Available // until it is known
			}
		case was != nil || kept:
			now.Since = metav1.NewTime(r.Clock.Now())
		default: // the status was lost
			now.Since = newest.CreationTimestamp
		}
		s.Status.Following = append(s.Status.Following, now)
	}
	return nil
}

func followedIn(list []addonsv1.FollowedVersion, addon string) *addonsv1.FollowedVersion {
	for i := range list {
		if list[i].Addon == addon {
			return &list[i]
		}
	}
	return nil
}

// announce tells which add-ons have other versions now.
func (r *Reconciler) announce(s *addonsv1.AddonStack, before, after stack.Pins) {
	for _, addon := range stack.Followed(&s.Spec) {
		was, is := before[addon.Name], after[addon.Name]
		if was.Version != "" && was.Version != is.Version {
			r.Recorder.Eventf(s, nil, corev1.EventTypeNormal, "NewVersion", "Follow",
				"Add-on %s: %s, before %s; the range is %s", addon.Name, is.Version, was.Version, addon.Chart.Version)
		}
	}
}

// agreed is status.following of a stack that several instances look after. One that
// has looked later has seen more: the newer versions stand, unless the spec is another.
func agreed(s, view *addonsv1.AddonStack) []addonsv1.FollowedVersion {
	if s.Status.ObservedGeneration != s.Generation {
		return view.Status.Following
	}
	var list []addonsv1.FollowedVersion
	for _, own := range view.Status.Following {
		if there := followedIn(s.Status.Following, own.Addon); there != nil {
			switch {
			case versions.Newer(there.Version, own.Version):
				own = *there
			case there.Version == own.Version && versions.Newer(there.Available, own.Available):
				own.Available = there.Available
			}
		}
		list = append(list, own)
	}
	return list
}
