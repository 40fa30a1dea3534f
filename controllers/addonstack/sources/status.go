// SPDX-License-Identifier: Apache-2.0

// Package sources tells of the sources of an AddonStack's add-ons, by its clusters and by the versions that it follows.
package sources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// The known facts of sources are the results of clusters and of polls for versions. No source is
// asked only to have something to report.

// maxAddress is what status.sources has room for.
const maxAddress = 2000 // bytes

// In returns where the stack's bundle and add-ons come from, by name, without the bundle's own.
func In(s *addonsv1.AddonStack) map[string]reference.Reference {
	refs := map[string]reference.Reference{}
	if s.Spec.Source != nil {
		refs[addonsv1.FollowedSource] = reference.BundleOf(s.Namespace, s.Spec.Source)
	}
	for i := range s.Spec.Addons {
		if ref := reference.AddonOf(s.Namespace, &s.Spec.Addons[i], s.Spec.Source); ref.Bundle == nil {
			refs[s.Spec.Addons[i].Name] = ref
		}
	}
	return refs
}

// Uses reports whether a source of the stack, or of values that its revisions pin, names an object.
func Uses(s *addonsv1.AddonStack, kind, name string) bool {
	for _, ref := range In(s) {
		if ref.Uses(kind, name) {
			return true
		}
	}
	for _, ref := range stack.StagedSources(&s.Spec) {
		if ref.Kind == kind && ref.Name == name {
			return true
		}
	}
	return false
}

// Of returns where the add-ons of the spec in force come from, and whether they can be had
// there, by the ClusterAddons and the last poll for versions. The stack's bundle comes first.
//
// While a newer spec waits for versions or its bundle, it returns the sources of that spec. The ClusterAddons tell of
// such a source if the spec in force has it as well. The spec in force may be nil.
//
// The stack itself fetched the artifacts that it follows, whether clusters want them or not.
func Of(
	s *addonsv1.AddonStack, inForce *addonsv1.AddonStackSpec, clusters []standing.Cluster, f *following.Resolution,
) []addonsv1.StackSource {
	spec := inForce
	if f != nil && f.Waits() {
		if spec = f.Pins().Into(&s.Spec); len(spec.Addons) == 0 && inForce != nil {
			spec.Addons = inForce.Addons // those of the bundle, as it was
		}
	}
	if spec == nil {
		return nil
	}
	var sources []addonsv1.StackSource
	if spec.Source != nil {
		c := Availability(f, addonsv1.FollowedSource, available())
		sources = append(sources, entryOf(s, addonsv1.FollowedSource, reference.BundleOf(s.Namespace, spec.Source), c))
	}
	for i := range spec.Addons {
		name, ref := spec.Addons[i].Name, reference.AddonOf(s.Namespace, &spec.Addons[i], spec.Source)
		c := notAsked()
		if spec == inForce || isIn(inForce, s.Namespace, name, ref) {
			c = onClusters(name, s, clusters)
		}
		sources = append(sources, entryOf(s, name, ref, Availability(f, name, c)))
	}
	return sources
}

// isIn reports whether a spec, which may be nil, has an add-on from this source.
func isIn(spec *addonsv1.AddonStackSpec, namespace, name string, ref reference.Reference) bool {
	return spec != nil && slices.ContainsFunc(spec.Addons, func(a addonsv1.Addon) bool {
		return a.Name == name && reference.AddonOf(namespace, &a, spec.Source).String() == ref.String()
	})
}

// entryOf makes an entry of status.sources. An unchanged condition keeps its time.
func entryOf(s *addonsv1.AddonStack, name string, ref reference.Reference, c metav1.Condition) addonsv1.StackSource {
	entry := addonsv1.StackSource{Addon: name, Address: message.Shorten(ref.Subject(), maxAddress)}
	if at := slices.IndexFunc(s.Status.Sources, func(e addonsv1.StackSource) bool { return e.Addon == name }); at >= 0 {
		entry.Conditions = slices.Clone(s.Status.Sources[at].Conditions)
	}
	c.ObservedGeneration = s.Generation
	meta.SetStatusCondition(&entry.Conditions, c)
	return entry
}

// Availability returns the condition of a source by what the stack itself has asked it for; else that of the clusters.
func Availability(f *following.Resolution, name string, ofClusters metav1.Condition) metav1.Condition {
	if f == nil {
		return ofClusters
	}
	w, isBundle := f.Of(name), name == addonsv1.FollowedSource && f.Bundle != nil
	switch {
	case isBundle && f.Bundle.Reason == failure.ArtifactPending:
		return sourceCondition(metav1.ConditionUnknown, failure.ArtifactPending, message.Shorten(following.OfBundle(f.Bundle), report.MaxProblem))
	case isBundle && following.IsOfSource(f.Bundle):
		return sourceCondition(metav1.ConditionFalse, f.Bundle.Reason, message.Shorten(following.OfBundle(f.Bundle), report.MaxProblem))
	case w == nil:
		return ofClusters
	case w.Failure() != nil:
		return sourceCondition(metav1.ConditionFalse, w.Failure().Reason, message.Shorten(w.Problem(), report.MaxProblem))
	case w.Waits():
		return sourceCondition(metav1.ConditionUnknown, failure.ArtifactPending, fmt.Sprintf("Looking for the newest version of %s in %s", w, w.Line))
	case w.HasFound(w.Pin) && ofClusters.Reason == addonsv1.SourceNotAskedReason:
		return available()
	}
	return ofClusters
}

// onClusters returns the condition of an add-on's source, by the statuses of the clusters at
// the newest revision. Such a status stands while another stack of the cluster is changed. A single
// failure is enough. The alphabet decides between several failures, so that the condition stays.
func onClusters(addon string, s *addonsv1.AddonStack, clusters []standing.Cluster) metav1.Condition {
	c := notAsked()
	for _, ca := range clusters {
		isSeen := ca.Status.ObservedGeneration == ca.Generation || stack.StatusOf(&ca.Status, s.Name).Revision == s.Status.LatestRevision
		if !isSeen || stack.AssignedRevision(ca.Spec.Stacks, s.Name) != s.Status.LatestRevision {
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
	case status.RecordDigest != "" || reasons.Of(status.Reason).Is(reasons.SourceRead):
		return available()
	}
	return notAsked()
}

// sourceCondition returns the Available condition of a source.
func sourceCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return report.Condition(addonsv1.SourceAvailableCondition, status, reason, message)
}

func available() metav1.Condition {
	return sourceCondition(metav1.ConditionTrue, addonsv1.SourceAvailableReason, "")
}

func notAsked() metav1.Condition {
	return sourceCondition(metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "No cluster has asked for it yet")
}

// worse returns the worse of two conditions, by their severity. The alphabet decides between equal ones.
func worse(a, b metav1.Condition) metav1.Condition {
	if cmp.Or(report.Severity(&b)-report.Severity(&a), strings.Compare(a.Reason+a.Message, b.Reason+b.Message)) <= 0 {
		return a
	}
	return b
}
