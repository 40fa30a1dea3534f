// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// What is known of sources is what clusters and looks for versions came to: a source
// isn't asked in order to have something to report.

// sourcesOf says of each add-on of the spec that is in force where it comes from, and
// whether it can be had there, by the ClusterAddons of the stack's clusters and the
// last look for versions. The stack's bundle comes first.
func sourcesOf(s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec, clusters []*addonsv1.ClusterAddon, f *following) []addonsv1.StackSource {
	var sources []addonsv1.StackSource
	report := func(addon string, ref source.Reference, c metav1.Condition) {
		entry := addonsv1.StackSource{Addon: addon, Address: shortenTo(ref.Address(), maxAddress)}
		for i := range s.Status.Sources {
			if s.Status.Sources[i].Addon == addon {
				entry.Conditions = append(entry.Conditions, s.Status.Sources[i].Conditions...)
			}
		}
		c.Type, c.ObservedGeneration = addonsv1.SourceAvailableCondition, s.Generation
		meta.SetStatusCondition(&entry.Conditions, c)
		sources = append(sources, entry)
	}
	if spec.Source != nil {
		// It was read to make the revision.
		c := metav1.Condition{Status: metav1.ConditionTrue, Reason: addonsv1.SourceAvailableReason}
		report(addonsv1.FollowedSource, source.BundleOf(s.Namespace, spec.Source), failedIn(f, addonsv1.FollowedSource, c))
	}
	for i := range spec.Addons {
		addon := &spec.Addons[i]
		c := availability(addon.Name, s, clusters)
		report(addon.Name, source.AddonOf(s.Namespace, addon, spec.Source), failedIn(f, addon.Name, c))
	}
	return sources
}

// maxAddress is what status.sources has room for, with what says that there is more.
const maxAddress = 2000 // bytes

// availability of an add-on's source, by what became of the add-on on the clusters
// that are at the newest revision. One failure is enough: of several, that which comes
// first in the alphabet, so that it is the same one in the next reconcile.
func availability(addon string, s *addonsv1.AddonStack, clusters []*addonsv1.ClusterAddon) metav1.Condition {
	c := metav1.Condition{Status: metav1.ConditionUnknown, Reason: addonsv1.SourceNotAskedReason, Message: "No cluster has asked for it yet"}
	for _, ca := range clusters {
		if ca.Status.ObservedGeneration != ca.Generation || revisionIn(ca, s.Name) != s.Status.LatestRevision {
			continue
		}
		for i := range ca.Status.Addons {
			status := &ca.Status.Addons[i]
			if status.Stack == s.Name && status.Name == addon {
				c = worse(c, said(status))
			}
		}
	}
	return c
}

// said is what an add-on's status says of its source.
func said(status *addonsv1.AddonStatus) metav1.Condition {
	switch {
	case status.Reason == failure.ArtifactPending:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: status.Reason, Message: status.Message}
	case failure.IsReason(status.Reason):
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: status.Reason, Message: status.Message}
	case status.Digest != "":
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: addonsv1.SourceAvailableReason}
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: addonsv1.SourceNotAskedReason, Message: "No cluster has asked for it yet"}
}

// worse of two: False, then pending, then True, then not asked.
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
	switch ra, rb := rank(a), rank(b); {
	case ra != rb && ra > rb:
		return a
	case ra != rb:
		return b
	case a.Reason+a.Message <= b.Reason+b.Message:
		return a
	}
	return b
}

// failedIn is the condition, unless the last look for versions failed.
func failedIn(f *following, name string, c metav1.Condition) metav1.Condition {
	if f == nil {
		return c
	}
	for _, failed := range f.failures {
		if failed.addon == name && c.Status != metav1.ConditionFalse {
			return metav1.Condition{
				Status: metav1.ConditionFalse, Reason: failed.err.Reason,
				Message: fmt.Sprintf("Looking for newer versions: %s", shorten(failed.err.Error())),
			}
		}
	}
	return c
}

// unavailable is why a source isn't available.
type unavailable struct {
	addon string
	*metav1.Condition
}

func unavailableIn(sources []addonsv1.StackSource) []unavailable {
	var found []unavailable
	for i := range sources {
		c := meta.FindStatusCondition(sources[i].Conditions, addonsv1.SourceAvailableCondition)
		if c != nil && c.Status == metav1.ConditionFalse {
			found = append(found, unavailable{sources[i].Addon, c})
		}
	}
	return found
}
