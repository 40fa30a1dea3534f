// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upgradegate"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// Report writes the status of a ClusterAddon.
type Report struct {
	// Observed has the ClusterAddon to write. Stored is as it was last written.
	*gather.Observed
	Stored  *addonsv1.ClusterAddon
	Cluster *member.Member
	Memory  *Memory
}

// Announce writes wanted add-ons into the status before anything of them is installed. So people see what is going on, however
// long the installation takes. It returns false if they are all there, and nothing else changed.
func (q Report) Announce(otherChange bool) bool {
	statuses, added := q.announced()
	if !added && !otherChange {
		return false
	}
	q.ClusterAddon.Status.Addons, q.ClusterAddon.Status.ObservedUID = statuses, q.ClusterAddon.UID
	NoteSince(&q.Stored.Status, &q.ClusterAddon.Status, q.Now)
	return true
}

// announced returns the statuses with those of wanted add-ons; false if they are all there.
func (q Report) announced() (all []addonsv1.AddonStatus, added bool) {
	before := &q.ClusterAddon.Status
	if before.ObservedUID == q.ClusterAddon.UID {
		all = slices.Clone(before.Addons)
	}
	for i := range q.Wanted {
		a := &q.Wanted[i]
		status := a.Status()
		at := result.IndexOf(all, status)
		switch {
		case at < 0:
			is := result.Previous(before.Addons, status)
			if reason, _ := upgradegate.HeldBack(q.Observed, a, q.Installed[a.Release()]); reason != "" {
				is.Reason = reason
			}
			all, added = append(all, is), true
		case all[at].Reason == reasons.StackUnknown:
			all[at].Reason, all[at].Message, added = "", "", true
		}
		if at >= 0 && all[at].ServiceAccountName != status.ServiceAccountName {
			all[at].ServiceAccountName, added = status.ServiceAccountName, true
		}
	}
	return all, added
}

// Finish writes what came of a reconcile at a time, and returns when to look again. Kept are the statuses of add-ons that are
// left as they are. isWhole says that each add-on was looked at.
func (q Report) Finish(all result.All, kept []addonsv1.AddonStatus, isWhole bool, now time.Time) time.Duration {
	ca := q.ClusterAddon
	if isWhole {
		ca.Status.ObservedGeneration = ca.Generation
		ca.Status.LastReconcileNow = gather.AskedFor(ca)
	}
	ca.Status.KubernetesVersions = upgradegate.KubernetesVersions(q.Observed)
	setDeletable(q.Observed, q.Cluster)
	ca.Status.GatesUpgrades = nil
	if q.Gates {
		ca.Status.GatesUpgrades = ptr.To(true)
	}
	q.noteChanges(all.Changes, now)
	held := q.Memory.setUpgrade(ca, q.Upgrade, q.Versions, upgradegate.Causes(q.Observed, all.Statuses), now)
	WriteAddons(ca, slices.Concat(kept, all.Statuses), q.HeldRemovals, q.OpenQuestions())
	NoteSince(&q.Stored.Status, &ca.Status, q.Now)
	ca.Status.Stacks = StackStates(&q.Stored.Status, &ca.Status, ca.Spec.Stacks, q.Unresolved, isWhole, q.Now)
	return retry.Sooner(held, retry.Sooner(q.RecheckAfter, all.RetryAfter))
}

// FinishDeletion writes what came of removals before the Cluster is deleted, and returns when to look again. The deletion waits
// for the add-ons that are left as long as hold says.
func (q Report) FinishDeletion(all result.All, kept []addonsv1.AddonStatus, hold upgrade.Hold) time.Duration {
	ca := q.ClusterAddon
	var left []string
	for i := range all.Statuses {
		left = append(left, all.Statuses[i].Name)
	}
	slices.Sort(left)
	q.noteChanges(all.Changes, q.Now)
	WriteAddons(ca, slices.Concat(kept, all.Statuses), nil, nil)
	NoteSince(&q.Stored.Status, &ca.Status, q.Now)
	setDeletion(ca, left, hold, time.Time{}, q.Now)
	if !all.Unreachable {
		ca.Status.ObservedGeneration = ca.Generation
	}
	return retry.Sooner(all.RetryAfter, result.Until(ca.Status.Deletion.Deadline.Time, q.Now))
}

// NoteSince writes since when add-ons have been in their phases, for their reasons. The times of those that are as they
// were stay. A status that a backup brought is of another ClusterAddon, and says nothing.
func NoteSince(before, after *addonsv1.ClusterAddonStatus, now time.Time) {
	for i := range after.Addons {
		s := &after.Addons[i]
		at := result.IndexOf(before.Addons, *s)
		if at >= 0 && before.ObservedUID == after.ObservedUID && before.Addons[at].Phase == s.Phase && before.Addons[at].Reason == s.Reason {
			s.Since = before.Addons[at].Since
		} else {
			s.Since = result.TimeOf(now)
		}
	}
}

// StackStates returns the assigned stacks with the states of their add-ons. A stack that can't be read for only a
// moment keeps its state. So does each one if not all add-ons were looked at; a revision that is new has begun then.
func StackStates(before, after *addonsv1.ClusterAddonStatus, assigned []addonsv1.StackRevision, unresolved map[string]gather.Unresolved, isWhole bool, now time.Time) []addonsv1.StackStatus {
	var all []addonsv1.StackStatus
	for _, a := range assigned {
		is := addonsv1.StackStatus{Name: a.Name, Revision: a.Revision, State: result.StateOf(a.Name, after.Addons), Since: result.TimeOf(now)}
		var was addonsv1.StackStatus
		if before.ObservedUID == after.ObservedUID {
			was = *stack.StatusOf(before, a.Name)
		}
		switch of, isUnresolved := unresolved[a.Name]; {
		case was.State != "" && (of.State.KeepsStatus() || (of.IsNew || !isWhole) && was.Revision == is.Revision):
			is.State = was.State
		case was.State != "" && of.IsNew: // nobody has seen yet which add-ons the new revision has
			is.State = addonsv1.StackProgressing
		case isUnresolved:
			is.State = addonsv1.StackUnknown
		case !isWhole:
			is.State = addonsv1.StackProgressing
		}
		if was.State == is.State && was.Revision == is.Revision {
			is.Since = was.Since
		}
		is.Started, is.WasReady, is.Previous = startOf(was, is)
		if result.HasPaused(a.Name, before.Addons) && !result.HasPaused(a.Name, after.Addons) {
			is.Started = result.TimeOf(now) // the time of a pause isn't its own
		}
		all = append(all, is)
	}
	return all
}

// startOf returns when work on the stack began, whether it was ready at the revision before, and the one that it was ready at
// last.
func startOf(was, is addonsv1.StackStatus) (started metav1.Time, wasReady *bool, previous string) {
	isOld := was.Revision == is.Revision && was.State != "" && !was.Started.IsZero()
	switch leavesReady := was.State == addonsv1.StackReady && is.State != addonsv1.StackReady; {
	case isOld && !leavesReady:
		return was.Started, was.WasReady, was.Previous
	case isOld:
		return is.Since, was.WasReady, was.Previous
	case was.State == "" || was.Revision == "":
		return is.Since, nil, ""
	}
	wasReady, previous = rollout.Leave(was, is.Revision)
	return is.Since, wasReady, previous
}
