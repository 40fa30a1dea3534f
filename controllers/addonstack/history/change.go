// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// noteChange brings the newest of the revisions into status.history, if status.latestRevision is another one: so it is there also if
// the write of the reconcile that kept it failed. Of a stack whose status was lost, only when the revision was made is known.
func (h History) noteChange(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, isNew bool) {
	is := revisions[0].Name
	if is == s.Status.LatestRevision || len(s.Status.History) > 0 && s.Status.History[0].To == is { // another instance noted it
		return
	}
	at := h.Clock.Now()
	if !isNew && s.Status.LatestRevision == "" {
		at = revisions[0].CreationTimestamp.Time
	}
	s.Status.History = slices.Insert(slices.Clone(s.Status.History), 0, ChangeTo(revisions, s.Status.LatestRevision, at))
	s.Status.History = s.Status.History[:min(len(s.Status.History), addonsv1.MaxHistory)]
}

// ChangeTo returns the change from a revision, "" if none is known, to the first of the revisions, the newest one.
func ChangeTo(revisions []appsv1.ControllerRevision, from string, at time.Time) addonsv1.StackChange {
	is, was := &revisions[0], &appsv1.ControllerRevision{}
	if known := slices.IndexFunc(revisions, func(r appsv1.ControllerRevision) bool { return r.Name == from }); known >= 0 {
		was = &revisions[known]
	}
	c := addonsv1.StackChange{
		Time: metav1.NewTime(at.Truncate(time.Second)), Cause: rollout.ChangeOf(was, is), By: is.Annotations[addonsv1.EditedByAnnotation],
		From: from, To: is.Name,
	}
	changed := stack.VersionChanges(stack.SpecAt(revisions, from), stack.SpecAt(revisions, is.Name))
	c.Versions = message.Shorten(message.List(changed, ", ", message.Few), 512)
	if c.Cause == addonsv1.ChangeFollowed && len(changed) == 0 {
		c.Cause = addonsv1.ChangeValues
	}
	return c
}
