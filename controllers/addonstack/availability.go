// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// availability returns the condition of an add-on's source, by the statuses of the clusters at
// the newest revision. One failure is enough; of several the alphabet decides, so that it stays.
func availability(addon string, s *addonsv1.AddonStack, clusters []*addonsv1.ClusterAddon) metav1.Condition {
	c := notAsked()
	for _, ca := range clusters {
		if ca.Status.ObservedGeneration != ca.Generation || stack.AssignedRevision(ca.Spec.Stacks, s.Name) != s.Status.LatestRevision {
			continue
		}
		for i := range ca.Status.Addons {
			status := &ca.Status.Addons[i]
			if status.Stack == s.Name && status.Name == addon {
				c = worse(c, availabilityIn(status))
			}
		}
	}
	return c
}

// availabilityIn returns what the status of an add-on says of its source.
func availabilityIn(status *addonsv1.AddonStatus) metav1.Condition {
	switch {
	case status.Reason == failure.ArtifactPending:
		return sourceCondition(metav1.ConditionUnknown, status.Reason, status.Message)
	case reasons.Of(status.Reason).Is(reasons.SourceBad):
		return sourceCondition(metav1.ConditionFalse, status.Reason, status.Message)
	case status.Digest != "" || wasRead(status):
		return available()
	}
	return notAsked()
}

// wasRead reports whether an add-on has a reason that is about what its source gave. That a
// template of the values fails is told before the source is asked.
func wasRead(status *addonsv1.AddonStatus) bool {
	return reasons.Of(status.Reason).Is(reasons.SourceRead) &&
		!strings.Contains(status.Message, fmt.Sprintf("addons[%s].valuesTemplate", status.Name))
}

// sourceCondition returns the Available condition of a source.
func sourceCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return newCondition(addonsv1.SourceAvailableCondition, status, reason, message)
}

func available() metav1.Condition {
	return sourceCondition(metav1.ConditionTrue, addonsv1.SourceAvailableReason, "")
}

func notAsked() metav1.Condition {
	return sourceCondition(metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "No cluster has asked for it yet")
}

// worse returns the worse of two conditions. False comes first, then pending, True, and not
// asked.
func worse(a, b metav1.Condition) metav1.Condition {
	rank := func(c metav1.Condition) int {
		switch {
		case c.Status == metav1.ConditionFalse:
			return 3
		case c.Reason == failure.ArtifactPending:
			return 2
		case c.Status == metav1.ConditionTrue:
			return 1
		}
		return 0
	}
	if rank(a) > rank(b) || rank(a) == rank(b) && a.Reason+a.Message <= b.Reason+b.Message {
		return a
	}
	return b
}
