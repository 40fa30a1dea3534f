// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// event is something that happened to a ClusterAddon, or to one of its add-ons.
type event struct {
	kind, reason, action, note string
	addon                      *addonsv1.AddonStatus // nil: the cluster as a whole
}

// recordEvents sends events of what changed since the last ones. The cached status may be older.
func (r *Reconciler) recordEvents(before, after *addonsv1.ClusterAddon) {
	memory := r.memoryOf(client.ObjectKeyFromObject(after))
	if memory.lastEvents != nil {
		before = &addonsv1.ClusterAddon{Status: *memory.lastEvents}
	}
	memory.lastEvents = toldOf(&before.Status, &after.Status)
	for _, e := range eventsOf(before, after) {
		r.record(after, e)
	}
}

// record sends an event. The recorder logs it, too.
func (r *Reconciler) record(ca *addonsv1.ClusterAddon, e event) {
	r.Recorder.Eventf(ca, e.related(ca), e.kind, e.reason, e.action, "%s", shorten(e.note))
}

// removedEvent tells that an add-on is gone, or was let go of.
func removedEvent(addon *addonsv1.AddonStatus, message string) event {
	note := fmt.Sprintf("Removed add-on %s from namespace %s", addon.Name, addon.Namespace)
	if message != "" {
		note += ". " + message
	}
	return event{kind: corev1.EventTypeNormal, reason: "AddonRemoved", action: "Remove", note: note, addon: addon}
}

// related returns where the add-on is asked for. Events that are equal in all but
// their note are counted as one, so each add-on's have to differ in more.
func (e *event) related(ca *addonsv1.ClusterAddon) runtime.Object {
	if e.addon == nil {
		return nil
	}
	return &corev1.ObjectReference{
		APIVersion: addonsv1.GroupVersion.String(), Kind: "AddonStack",
		Namespace: ca.Namespace, Name: e.addon.Stack,
		FieldPath: fmt.Sprintf("spec.addons[%s]", e.addon.Name),
	}
}

func eventsOf(before, after *addonsv1.ClusterAddon) []event {
	all := []*event{reachabilityEvent(before, after), recordsEvent(before, after), deletionEvent(before.Status.Deletion, after.Status.Deletion)}
	for _, s := range after.Status.Addons {
		all = append(all, addonEvent(previousOf(s, before.Status.Addons), s))
	}
	events := upgradeEvents(before.Status.Upgrade, after.Status.Upgrade)
	for _, e := range all {
		if e != nil {
			events = append(events, *e)
		}
	}
	return events
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

func reachabilityEvent(before, after *addonsv1.ClusterAddon) *event {
	was, is := conditions.Get(before, addonsv1.ClusterReachableCondition), conditions.Get(after, addonsv1.ClusterReachableCondition)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	switch is.Status {
	case metav1.ConditionTrue:
		return &event{kind: corev1.EventTypeNormal, reason: is.Reason, action: "Connect", note: "Connected to the workload cluster"}
	case metav1.ConditionFalse:
		return &event{kind: corev1.EventTypeWarning, reason: is.Reason, action: "Connect", note: is.Message}
	default:
		return nil
	}
}

// recordsEvent tells that nobody knows what the cluster runs.
func recordsEvent(before, after *addonsv1.ClusterAddon) *event {
	is := conditions.Get(after, addonsv1.AddonsReadyCondition)
	if is == nil || is.Reason != addonsv1.RecordsUnreadableReason || conditions.GetReason(before, is.Type) == is.Reason {
		return nil
	}
	return &event{kind: corev1.EventTypeWarning, reason: is.Reason, action: "Read", note: is.Message}
}

// becameReady says how an add-on became ready, "" if there is nothing to tell. An add-on that only
// waited, and is at its previous revision, wasn't installed by that.
func becameReady(was, is addonsv1.AddonStatus) string {
	switch {
	case was.Revision != is.Revision:
		return "Installed"
	case was.Phase == addonsv1.AddonDegraded:
		return "Healthy again:"
	case was.Phase == addonsv1.AddonReady, isPassing(was):
		return ""
	case was.Phase == addonsv1.AddonPending, was.Phase == addonsv1.AddonUnassigned: // somebody was told of it
		return "Still installed:"
	}
	return "Installed"
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
func addonEvent(was, is addonsv1.AddonStatus) *event {
	if !isNews(was, is) {
		return nil
	}
	did, e := "", &event{kind: corev1.EventTypeNormal, addon: &is}
	switch trouble, isTrouble := troubles[is.Phase]; {
	case isTrouble && reasons.Of(is.Reason).Warns(is.Phase):
		e.kind, e.reason, e.action = corev1.EventTypeWarning, is.Reason, trouble.action
		e.note = fmt.Sprintf("Add-on %s %s: %s", is.Name, trouble.is, is.Message)
		return e
	case is.Phase == addonsv1.AddonReady:
		did, e.reason, e.action = becameReady(was, is), "AddonReady", "Install"
	case is.Phase == addonsv1.AddonRemoving && was.Phase != is.Phase:
		did, e.reason, e.action = "Removing", "AddonRemoving", "Remove"
	}
	if did == "" {
		return nil
	}
	e.note = fmt.Sprintf("%s add-on %s %s in namespace %s (release revision %d)", did, is.Name, is.Version, is.Namespace, is.Revision)
	return e
}
