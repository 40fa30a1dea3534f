// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// event is something that happened to a ClusterAddon.
type event struct {
	kind, reason, action, note string
}

// recordEvents tells what changed from one status to the next.
func (r *Reconciler) recordEvents(before, after *addonsv1.ClusterAddon) {
	for _, e := range eventsOf(before, after) {
		r.Recorder.Eventf(after, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
}

func eventsOf(before, after *addonsv1.ClusterAddon) []event {
	var events []event
	if e := reachabilityEvent(before, after); e != nil {
		events = append(events, *e)
	}
	known := map[[2]string]addonsv1.AddonStatus{}
	for _, s := range before.Status.Addons {
		known[[2]string{s.Namespace, s.Name}] = s
	}
	for _, s := range after.Status.Addons {
		if e := addonEvent(known[[2]string{s.Namespace, s.Name}], s); e != nil {
			events = append(events, *e)
		}
	}
	return events
}

func reachabilityEvent(before, after *addonsv1.ClusterAddon) *event {
	was, is := conditions.Get(before, addonsv1.ClusterReachableCondition), conditions.Get(after, addonsv1.ClusterReachableCondition)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	switch is.Status {
	case metav1.ConditionTrue:
		return &event{corev1.EventTypeNormal, is.Reason, "Connect", "Connected to the workload cluster"}
	case metav1.ConditionFalse:
		return &event{corev1.EventTypeWarning, is.Reason, "Connect", is.Message}
	default:
		return nil
	}
}

// addonEvent returns nil if there is nothing to tell.
func addonEvent(was, is addonsv1.AddonStatus) *event {
	if was.Phase == is.Phase && was.Reason == is.Reason && was.Revision == is.Revision {
		return nil
	}
	name := fmt.Sprintf("add-on %s %s (release revision %d) in namespace %s", is.Name, is.Version, is.Revision, is.Namespace)
	switch is.Phase {
	case addonsv1.AddonInstalling:
		if was.Phase != is.Phase {
			return &event{corev1.EventTypeNormal, "AddonInstalling", "Install", "Installing " + name}
		}
	case addonsv1.AddonUpgrading:
		if was.Phase != is.Phase || was.Revision != is.Revision {
			return &event{corev1.EventTypeNormal, "AddonUpgrading", "Upgrade", "Upgrading to " + name}
		}
	case addonsv1.AddonReady:
		if was.Phase != is.Phase || was.Revision != is.Revision {
			return &event{corev1.EventTypeNormal, "AddonReady", "Install", "Ready: " + name}
		}
	case addonsv1.AddonFailed:
		return &event{corev1.EventTypeWarning, is.Reason, "Install", fmt.Sprintf("Add-on %s failed: %s", is.Name, is.Message)}
	case addonsv1.AddonRemoving:
		if was.Phase != is.Phase {
			return &event{corev1.EventTypeNormal, "AddonRemoving", "Remove", "Removing " + name}
		}
	case addonsv1.AddonPending:
	}
	return nil
}
