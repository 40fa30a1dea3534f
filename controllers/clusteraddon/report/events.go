// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// reasonReady is that of an event of add-ons that became ready.
const reasonReady = "AddonReady"

// maxReadyNotes is how many of them an event tells of, so that the note has room for each.
const maxReadyNotes = 8

// Memory is what was reported of a ClusterAddon last.
//
// Key: the ClusterAddon.
// Bound: until it is gone.
// Lost with it: an event may be sent again, or not at all if its add-on became ready, and a change that no write has brought into the
// history is missing there.
type Memory struct {
	// lastEvents is the status that events were last about, nil before the first.
	lastEvents *addonsv1.ClusterAddonStatus
	// ready are events of add-ons that became ready while others were installed or upgraded, the last one of each.
	ready []result.Event
	// unwritten are the last ten changes since the status was written, the oldest first.
	unwritten []addonsv1.AddonChange
	// gates are those of the cluster's upgrade, as they are counted.
	gates gateSeries
}

// Forget takes a ClusterAddon that is gone out of the metrics.
func (m *Memory) Forget() { m.gates.count(nil) }

// Events returns the events of what changed since the last ones. The cached status may be older. Add-ons that become ready beside each
// other are told of in one event, once the last of them is.
func (m *Memory) Events(before, after *addonsv1.ClusterAddon) []result.Event {
	if m.lastEvents != nil {
		before = &addonsv1.ClusterAddon{Status: *m.lastEvents}
	}
	m.lastEvents = toldOf(&before.Status, &after.Status)
	return m.gather(eventsOf(before, after), after.Status.Addons)
}

// gather returns the events without those of add-ons that became ready, as long as others are installed or upgraded.
func (m *Memory) gather(all []result.Event, addons []addonsv1.AddonStatus) (told []result.Event) {
	for _, e := range all {
		if e.Reason != reasonReady {
			told = append(told, e)
			continue
		}
		m.ready = slices.DeleteFunc(m.ready, func(of result.Event) bool {
			return of.Addon.Name == e.Addon.Name && of.Addon.Namespace == e.Addon.Namespace
		})
		m.ready = append(m.ready, e)
	}
	isWorkedOn := func(s addonsv1.AddonStatus) bool {
		return s.Phase == addonsv1.AddonInstalling || s.Phase == addonsv1.AddonUpgrading
	}
	if len(m.ready) == 0 || slices.ContainsFunc(addons, isWorkedOn) {
		return told
	}
	one := m.ready[0]
	if len(m.ready) > 1 {
		var notes []string
		for _, e := range m.ready {
			notes = append(notes, e.Note)
		}
		one.Addon, one.Note = nil, fmt.Sprintf("%d add-ons are ready: %s", len(notes), message.List(notes, "; ", maxReadyNotes))
	}
	m.ready = nil
	return append(told, one)
}

// Send sends events about a ClusterAddon. The recorder logs them, too.
func Send(recorder events.EventRecorder, ca *addonsv1.ClusterAddon, all []result.Event) {
	for _, e := range all {
		recorder.Eventf(ca, related(ca, e.Addon), e.Kind, e.Reason, e.Action, "%s", result.Shorten(e.Note))
	}
}

// related returns where the add-on is asked for. Events that are equal in all but
// their note are counted as one, so each add-on's have to differ in more.
func related(ca *addonsv1.ClusterAddon, addon *addonsv1.AddonStatus) runtime.Object {
	if addon == nil {
		return nil
	}
	return &corev1.ObjectReference{
		APIVersion: addonsv1.GroupVersion.String(), Kind: "AddonStack",
		Namespace: ca.Namespace, Name: addon.Stack,
		FieldPath: fmt.Sprintf("spec.addons[%s]", addon.Name),
	}
}

func eventsOf(before, after *addonsv1.ClusterAddon) []result.Event {
	all := []*result.Event{reachabilityEvent(before, after), recordsEvent(before, after), deletionEvent(before.Status.Deletion, after.Status.Deletion)}
	for _, s := range after.Status.Addons {
		all = append(all, addonEvent(previousOf(s, before.Status.Addons), s, after.Status.History))
	}
	list := upgradeEvents(before.Status.Upgrade, after.Status.Upgrade)
	for _, e := range all {
		if e != nil {
			list = append(list, *e)
		}
	}
	return list
}

// toldOf returns the status that events are about by now. An add-on with a Warning keeps that
// status while its source or cluster is asked again: the same outcome makes no second event.
func toldOf(before, after *addonsv1.ClusterAddonStatus) *addonsv1.ClusterAddonStatus {
	last := after.DeepCopy()
	for i, s := range last.Addons {
		was := previousOf(s, before.Addons)
		if was.Stack == s.Stack && was.Revision == s.Revision && isWaiting(was, s) {
			last.Addons[i] = was
		}
	}
	return last
}

// isWaiting says whether what was told of an add-on may still be so after it has waited.
func isWaiting(was, is addonsv1.AddonStatus) bool {
	if is.Reason == reasons.Retrying && is.Phase == was.Phase {
		return true
	}
	return isPassing(is) && reasons.Of(was.Reason).Warns(was.Phase) && was.Phase != addonsv1.AddonUnassigned
}

// isPassing reports whether an add-on waits for what comes by itself.
func isPassing(s addonsv1.AddonStatus) bool {
	return s.Phase == addonsv1.AddonPending && reasons.Of(s.Reason).Is(reasons.Passing)
}

// previousOf returns the add-on's previous status, or that of the stack it was taken over from.
func previousOf(s addonsv1.AddonStatus, all []addonsv1.AddonStatus) (previous addonsv1.AddonStatus) {
	for _, was := range all {
		switch {
		case was.Namespace != s.Namespace || was.Name != s.Name:
		case was.Stack == s.Stack:
			return was
		default:
			previous = was
		}
	}
	return previous
}

func reachabilityEvent(before, after *addonsv1.ClusterAddon) *result.Event {
	was, is := conditions.Get(before, addonsv1.ClusterReachableCondition), conditions.Get(after, addonsv1.ClusterReachableCondition)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	switch is.Status {
	case metav1.ConditionTrue:
		return &result.Event{Kind: corev1.EventTypeNormal, Reason: is.Reason, Action: "Connect", Note: "Connected to the workload cluster"}
	case metav1.ConditionFalse:
		return &result.Event{Kind: corev1.EventTypeWarning, Reason: is.Reason, Action: "Connect", Note: is.Message}
	default:
		return nil
	}
}

// recordsEvent tells that nobody knows what the cluster runs.
func recordsEvent(before, after *addonsv1.ClusterAddon) *result.Event {
	is := conditions.Get(after, addonsv1.AddonsReadyCondition)
	if is == nil || is.Reason != addonsv1.RecordsUnreadableReason || conditions.GetReason(before, is.Type) == is.Reason {
		return nil
	}
	return &result.Event{Kind: corev1.EventTypeWarning, Reason: is.Reason, Action: "Read", Note: is.Message}
}

// becameReady says how an add-on became ready, "" if there is nothing to tell. An add-on that only
// waited, and is at its previous revision, wasn't installed by that.
func becameReady(was, is addonsv1.AddonStatus, history []addonsv1.AddonChange) string {
	switch {
	case was.Revision != is.Revision:
	case was.Phase == addonsv1.AddonDegraded:
		return describeRelease("Healthy again:", is)
	case was.Phase == addonsv1.AddonReady, isPassing(was):
		return ""
	case was.Phase == addonsv1.AddonPending, was.Phase == addonsv1.AddonUnassigned: // somebody was told of it
		return describeRelease("Still installed:", is)
	}
	at := slices.IndexFunc(history, func(c addonsv1.AddonChange) bool {
		return c.Addon == is.Name && c.Namespace == is.Namespace && c.Revision == is.Revision && c.Cause != addonsv1.ChangeRepaired
	})
	if at < 0 || history[at].From == "" {
		return describeRelease("Installed", is)
	}
	from := history[at].From
	if from != is.Version {
		is.Version = fmt.Sprintf("from %s to %s", from, is.Version)
	}
	return describeRelease("Upgraded", is) + ": " + reasons.Because(history[at].Cause)
}

// describeRelease says what was done with the release of an add-on.
func describeRelease(did string, is addonsv1.AddonStatus) string {
	return fmt.Sprintf("%s add-on %s %s in namespace %s (release revision %d)", did, is.Name, is.Version, is.Namespace, is.Revision)
}

// isNews says whether there may be something to tell. A new message about a fault that somebody has
// to fix is news, too: the message of a source is the same as long as the cause is.
func isNews(was, is addonsv1.AddonStatus) bool {
	if was.Phase != is.Phase || was.Reason != is.Reason || was.Revision != is.Revision {
		return true
	}
	ofSource := is.Phase == addonsv1.AddonFailed && reasons.Of(is.Reason).Is(reasons.SourceBad)
	return was.Message != is.Message && (ofSource || is.Phase == addonsv1.AddonPending && !isPassing(is))
}

// troubles are the phases with a Warning: the action of the event, and how such an add-on is.
var troubles = map[addonsv1.AddonPhase]struct{ action, is string }{
	addonsv1.AddonFailed:     {"Install", "failed"},
	addonsv1.AddonDegraded:   {"Watch", "is degraded"},
	addonsv1.AddonUnassigned: {"Keep", "is left as it is"},
	addonsv1.AddonPending:    {"Install", "is pending"},
}

// addonEvent returns nil if there is nothing to tell. While an add-on is installed or upgraded, the status says so; an
// event tells how it ends.
func addonEvent(was, is addonsv1.AddonStatus, history []addonsv1.AddonChange) *result.Event {
	if !isNews(was, is) {
		return nil
	}
	e := &result.Event{Kind: corev1.EventTypeNormal, Addon: &is}
	switch trouble, isTrouble := troubles[is.Phase]; {
	case isTrouble && reasons.Of(is.Reason).Warns(is.Phase):
		e.Kind, e.Reason, e.Action = corev1.EventTypeWarning, is.Reason, trouble.action
		e.Note = fmt.Sprintf("Add-on %s %s: %s", is.Name, trouble.is, is.Message)
		return e
	case is.Phase == addonsv1.AddonReady:
		e.Note, e.Reason, e.Action = becameReady(was, is, history), reasonReady, "Install"
	case is.Phase == addonsv1.AddonRemoving && was.Phase != is.Phase:
		e.Note, e.Reason, e.Action = describeRelease("Removing", is), "AddonRemoving", "Remove"
	}
	if e.Note == "" {
		return nil
	}
	return e
}
