// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// noteSince writes since when add-ons have been in their phases, for their reasons. The times of those that are as they
// were stay. A status that a backup brought is of another ClusterAddon, and says nothing.
func noteSince(before, after *addonsv1.ClusterAddonStatus, now time.Time) {
	for i := range after.Addons {
		s := &after.Addons[i]
		at := indexOf(before.Addons, *s)
		if at >= 0 && before.ObservedUID == after.ObservedUID && before.Addons[at].Phase == s.Phase && before.Addons[at].Reason == s.Reason {
			s.Since = before.Addons[at].Since
		} else {
			s.Since = timeOf(now)
		}
	}
}

// stackStates returns the assigned stacks with the states of their add-ons. A stack that can't be read for only a
// moment keeps its state. So does each one if not all add-ons were looked at; a revision that is new has begun then.
func stackStates(before, after *addonsv1.ClusterAddonStatus, assigned []addonsv1.StackRevision, unresolved map[string]unresolvedStack, isWhole bool, now time.Time) []addonsv1.StackStatus {
	var all []addonsv1.StackStatus
	for _, a := range assigned {
		is := addonsv1.StackStatus{Name: a.Name, Revision: a.Revision, State: stateOf(a.Name, after.Addons), Since: timeOf(now)}
		var was addonsv1.StackStatus
		if at := slices.IndexFunc(before.Stacks, func(s addonsv1.StackStatus) bool { return s.Name == a.Name }); at >= 0 && before.ObservedUID == after.ObservedUID {
			was = before.Stacks[at]
		}
		switch of, isUnresolved := unresolved[a.Name]; {
		case was.State != "" && (isUnresolved && (of.state.KeepsStatus() || of.isNew) || !isWhole && was.Revision == is.Revision):
			is.State = was.State
		case isUnresolved:
			is.State = addonsv1.StackUnknown
		case !isWhole:
			is.State = addonsv1.StackProgressing
		}
		if was.State == is.State && was.Revision == is.Revision {
			is.Since = was.Since
		}
		is.Started, is.WasReady = startOf(was, is)
		all = append(all, is)
	}
	return all
}

// startOf returns when work on the stack began, and whether it was ready at the revision before.
func startOf(was, is addonsv1.StackStatus) (metav1.Time, *bool) {
	isOld := was.Revision == is.Revision && was.State != "" && !was.Started.IsZero()
	switch leavesReady := was.State == addonsv1.StackReady && is.State != addonsv1.StackReady; {
	case isOld && !leavesReady:
		return was.Started, was.WasReady
	case isOld:
		return is.Since, was.WasReady
	case was.State == "" || was.Revision == "":
		return is.Since, nil
	}
	return is.Since, rollout.WasReady(was)
}

// stateOf sums up the phases of a stack's add-ons.
func stateOf(stack string, addons []addonsv1.AddonStatus) addonsv1.StackState {
	has := map[addonsv1.AddonPhase]bool{}
	for i := range addons {
		if addons[i].Stack == stack {
			has[addons[i].Phase] = true
		}
	}
	switch {
	case has[addonsv1.AddonFailed]:
		return addonsv1.StackFailed
	case has[addonsv1.AddonUnassigned]:
		return addonsv1.StackUnknown
	case has[addonsv1.AddonInstalling], has[addonsv1.AddonUpgrading], has[addonsv1.AddonRemoving]:
		return addonsv1.StackProgressing
	case has[addonsv1.AddonDegraded]:
		return addonsv1.StackDegraded
	case has[addonsv1.AddonPending]:
		return addonsv1.StackPending
	}
	return addonsv1.StackReady
}

// timeOf returns a time as the API keeps it, in whole seconds.
func timeOf(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }
