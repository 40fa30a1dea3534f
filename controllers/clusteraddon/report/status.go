// SPDX-License-Identifier: Apache-2.0

// Package report writes into the status what was observed and what was done, and tells it in conditions, events and metrics.
package report

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/message"
)

// WriteAddons writes the add-ons. held are removals to confirm, open is what isn't known of the stacks.
func WriteAddons(ca *addonsv1.ClusterAddon, statuses []addonsv1.AddonStatus, held, open []string) {
	slices.SortFunc(statuses, func(a, b addonsv1.AddonStatus) int {
		return cmp.Or(cmp.Compare(a.Stack, b.Stack), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	ca.Status.Addons, ca.Status.ObservedUID = statuses, ca.UID
	phases := phasesOf(statuses)
	ca.Status.ReadyAddons = fmt.Sprintf("%d/%d", phases[addonsv1.AddonReady], len(statuses)-phases[addonsv1.AddonUnassigned])
	ca.Status.DriftedObjects, ca.Status.StackNames = drifted(statuses), message.List(namesOf(ca.Spec.Stacks), ",", message.Few)
	c := addonsReady(statuses, held, open, phases)
	if c.Reason == addonsv1.NoStackMatchesReason && len(ca.Spec.Stacks) > 0 {
		c.Reason, c.Message = addonsv1.AddonsReadyReason, result.Shorten("No add-on is wanted now of AddonStack "+message.List(namesOf(ca.Spec.Stacks), ", ", message.Few))
	}
	conditions.Set(ca, c)
}

func namesOf(stacks []addonsv1.StackRevision) []string {
	names := make([]string, 0, len(stacks))
	for _, s := range stacks {
		names = append(names, s.Name)
	}
	return names
}

// drifted counts the objects that differ from what was installed.
func drifted(statuses []addonsv1.AddonStatus) (n int64) {
	for i := range statuses {
		if d := statuses[i].Drift; d != nil {
			n += int64(d.Objects)
		}
	}
	return n
}

// RecordsUnread returns AddonsReady until it is known what the cluster runs, and while that
// can't be followed. The error is of the last try, nil if none has failed.
func RecordsUnread(err error) metav1.Condition {
	c := metav1.Condition{
		Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionUnknown, Reason: addonsv1.AddonsUnknownReason,
		Message: "The release records of the workload cluster are being read",
	}
	if err != nil {
		if fleetwatch.IsLasting(err) {
			c.Reason = addonsv1.RecordsUnreadableReason
		}
		c.Message = result.Shorten(fmt.Sprintf("The release records of the workload cluster can't be read: %v. See if its kubeconfig's user may list and watch Secrets", err))
	}
	return c
}

func addonsReady(statuses []addonsv1.AddonStatus, held, open []string, phases map[addonsv1.AddonPhase]int) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionFalse}
	switch {
	case len(held) > 0:
		c.Reason = addonsv1.RemovalHeldReason
		c.Message = message.List(held, "; ", message.Few)
		if failing := describeAll(statuses, addonsv1.AddonFailed, addonsv1.AddonDegraded); failing != "" {
			c.Message += ". Beside that, " + failing
		}
	case phases[addonsv1.AddonFailed] > 0:
		c.Reason = addonsv1.AddonsFailedReason
		c.Message = describeAll(statuses, addonsv1.AddonFailed)
	case phases[addonsv1.AddonDegraded] > 0:
		c.Reason = addonsv1.AddonsDegradedReason
		c.Message = describeAll(statuses, addonsv1.AddonDegraded)
	case len(open) > 0:
		c.Reason = addonsv1.AddonsProgressingReason
		c.Message = message.List(open, "; ", message.Few)
	case len(statuses) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.NoStackMatchesReason
		c.Message = "No AddonStack selects this Cluster: there is nothing to do"
	case phases[addonsv1.AddonReady]+phases[addonsv1.AddonUnassigned] == len(statuses):
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.AddonsReadyReason
		c.Message = describeAll(statuses, addonsv1.AddonUnassigned)
	default:
		c.Reason = addonsv1.AddonsProgressingReason
		c.Message = describeAll(statuses, addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonRemoving, addonsv1.AddonPending)
	}
	return c
}

// Summarize writes the Ready condition from all others.
func Summarize(ca *addonsv1.ClusterAddon) {
	c := metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	for _, part := range ca.Status.Conditions {
		negative := part.Type == addonsv1.DeletingCondition || part.Type == addonsv1.PausedCondition
		if negative && part.Status == metav1.ConditionTrue {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, part.Reason, part.Message
			conditions.Set(ca, c)
			return
		}
	}
	for _, kind := range []string{addonsv1.ControlPlaneInitializedCondition, addonsv1.ClusterReachableCondition, addonsv1.AddonsReadyCondition} {
		part := conditions.Get(ca, kind)
		if part == nil {
			c.Status, c.Reason = metav1.ConditionUnknown, addonsv1.NotReadyReason
			continue
		}
		c.Reason, c.Message = part.Reason, part.Message
		if c.Status = part.Status; part.Status != metav1.ConditionTrue {
			break
		}
	}
	if c.Status == metav1.ConditionTrue && c.Reason != addonsv1.NoStackMatchesReason {
		c.Reason = addonsv1.ReadyReason
	}
	conditions.Set(ca, c)
}

// describeAll names the first add-ons of the given phases.
func describeAll(statuses []addonsv1.AddonStatus, phases ...addonsv1.AddonPhase) string {
	var parts []string
	for i := range statuses {
		s := &statuses[i]
		if !slices.Contains(phases, s.Phase) {
			continue
		}
		part := s.Name + ": " + result.DescribePhase(s)
		if s.Message != "" {
			part += ": " + s.Message
		}
		parts = append(parts, part)
	}
	return message.List(parts, "; ", message.Few)
}

// phasesOf returns how many add-ons are in each phase.
func phasesOf(statuses []addonsv1.AddonStatus) map[addonsv1.AddonPhase]int {
	number := map[addonsv1.AddonPhase]int{}
	for i := range statuses {
		number[statuses[i].Phase]++
	}
	return number
}
