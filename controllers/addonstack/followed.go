// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// reportSources writes the SourcesReady condition, and an event of what is wrong.
// It is about status.sources, too, which is up to date unless the spec waits.
func (r *Reconciler) reportSources(s *addonsv1.AddonStack, f *following) {
	before := conditions.Get(s, addonsv1.SourcesReadyCondition)
	if before != nil && before.Status == metav1.ConditionFalse && f.looking && len(f.waiting) == 0 && len(f.failures) == 0 {
		return // nobody knows better yet
	}
	c := sourcesReady(f, s.Status.Sources)
	if len(f.failures) > 0 {
		r.warnOf(s, f.failures[0].err.Reason, "Follow", c.Message)
	} else {
		r.warnOfClusters(s, c, s.Status.Sources)
	}
	conditions.Set(s, c)
}

// sourcesReady makes the condition from what looking for versions came to, and, if that
// is settled, from what the clusters say of their sources.
func sourcesReady(f *following, sources []addonsv1.StackSource) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.SourcesReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.SourcesReadyReason}
	var texts []string
	for _, failed := range f.failures {
		text := failed.text()
		if version, refused := f.available[failed.addon]; refused && !failed.withdrawn {
			text += fmt.Sprintf(". So %s isn't taken, %s", version, f.instead(failed.addon))
		}
		texts = append(texts, text)
	}
	switch {
	case len(f.waiting) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, addonsv1.SourcesPendingReason
		if c.Message = "The spec waits for its sources. " + firstOf(texts); len(texts) == 0 {
			c.Message = fmt.Sprintf("Looking for the newest version of %s in %s", f.waiting[0], f.waiting[0].Line)
		}
	default:
		reasons := make([]string, 0, len(texts))
		for _, failed := range f.failures {
			reasons = append(reasons, failed.err.Reason)
		}
		for _, unavailable := range unavailableIn(sources) {
			if !f.hasFailed(unavailable.addon) {
				reasons, texts = append(reasons, unavailable.Reason), append(texts, unavailable.Message)
			}
		}
		unasked := notAskedIn(sources)
		switch {
		case len(texts) > 0:
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasons[0], firstOf(texts)
		case len(unasked) > 0 && len(unasked) == len(sources):
			c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "No cluster has asked for any of them yet"
		case len(unasked) > 0:
			c.Message = "No cluster has asked yet for " + message.List(unasked, ", ", shownProblems)
		}
	}
	return c
}

// instead is what becomes of a follower whose newest version isn't taken.
func (f *following) instead(name string) string {
	pin := f.pins[name]
	if slices.ContainsFunc(f.followers, func(w stack.Follower) bool { return w.Name == name && w.HasFound(pin) }) {
		return "it stays at " + pin.Version
	}
	return fmt.Sprintf("and %s, which the spec named before, hasn't been found good either; clusters keep what they run", pin.Version)
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
	for _, follower := range f.followers {
		pin := pins[follower.Name]
		if !follower.HasFound(pin) {
			continue
		}
		now := addonsv1.FollowedVersion{Addon: follower.Name, Version: pin.Version, Available: f.available[follower.Name]}
		was := followedIn(before, follower.Name)
		switch {
		case was != nil && was.Version == pin.Version:
			now.Since = was.Since
			if now.Available == "" && f.unseen.Has(follower.Name) && follower.Line.Allows(was.Available) && follower.Line.Newer(was.Available, pin.Version) {
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

// announce tells which parts have other versions now.
func (r *Reconciler) announce(s *addonsv1.AddonStack, followers []stack.Follower, before, after stack.Pins) {
	for _, follower := range followers {
		was, is := before[follower.Name], after[follower.Name]
		if was.Version != "" && was.Version != is.Version {
			r.Recorder.Eventf(s, nil, corev1.EventTypeNormal, "NewVersion", "Follow",
				"%s: %s, before %s; it follows %s", capitalized(follower), is.Version, was.Version, follower.Line)
		}
	}
}

// capitalized is the follower's name at the start of a sentence, but for a field's.
func capitalized(follower stack.Follower) string {
	if follower.Bundle != nil {
		return follower.Name
	}
	return "Add-on " + follower.Name
}

// agreed is status.following of a stack that several instances look after. One that
// has looked later has seen more: the newer versions stand, unless the spec is another.
func agreed(s, view *addonsv1.AddonStack) []addonsv1.FollowedVersion {
	if s.Status.ObservedGeneration != s.Generation {
		return view.Status.Following
	}
	followers := stack.Followers(&s.Spec)
	var list []addonsv1.FollowedVersion
	for _, own := range view.Status.Following {
		there := followedIn(s.Status.Following, own.Addon)
		at := slices.IndexFunc(followers, func(f stack.Follower) bool { return f.Name == own.Addon })
		if there != nil && at >= 0 {
			switch line := followers[at].Line; {
			case line.Newer(there.Version, own.Version):
				own = *there
			case there.Version == own.Version && line.Newer(there.Available, own.Available):
				own.Available = there.Available
			}
		}
		list = append(list, own)
	}
	return list
}
