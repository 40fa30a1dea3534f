// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// What is known of sources is what clusters and looks for versions came to: a source
// isn't asked in order to have something to report.

// sourcesOf says of each add-on of the spec that is in force where it comes from, and
// whether it can be had there, by the ClusterAddons of the stack's clusters and the
// last look for versions. The stack's bundle comes first.
func sourcesOf(s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec, clusters []*addonsv1.ClusterAddon, f *following) []addonsv1.StackSource {
	r := newSourceReport(s, spec, f)
	if spec.Source != nil {
		// It was read to make the revision.
		r.add(addonsv1.FollowedSource, reference.BundleOf(s.Namespace, spec.Source), metav1.Condition{Status: metav1.ConditionTrue, Reason: addonsv1.SourceAvailableReason})
	}
	for i := range spec.Addons {
		addon := &spec.Addons[i]
		r.add(addon.Name, reference.AddonOf(s.Namespace, addon, spec.Source), availability(addon.Name, s, clusters))
	}
	return r.sources
}

// sourceReport makes the entries of status.sources.
type sourceReport struct {
	stack   *addonsv1.AddonStack
	f       *following       // nil if nothing was looked for
	found   sets.Set[string] // of what is followed: the versions that the spec is pinned to
	sources []addonsv1.StackSource
}

// newSourceReport is about a spec whose versions are pinned, as far as they are known.
func newSourceReport(s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec, f *following) *sourceReport {
	pins, found := stack.PinsOf(&s.Spec, spec), sets.New[string]()
	for _, follower := range stack.Followers(&s.Spec) {
		if follower.HasFound(pins[follower.Name]) {
			found.Insert(follower.Name)
		}
	}
	return &sourceReport{stack: s, f: f, found: found}
}

// add an entry with what clusters say, or the stack itself: it fetched what it follows.
func (r *sourceReport) add(name string, ref reference.Reference, c metav1.Condition) {
	if r.found.Has(name) && c.Reason == addonsv1.SourceNotAskedReason {
		c = metav1.Condition{Status: metav1.ConditionTrue, Reason: addonsv1.SourceAvailableReason}
	}
	c = r.f.orFailed(name, c)
	entry := addonsv1.StackSource{Addon: name, Address: shortenTo(ref.Subject(), maxAddress)}
	for i := range r.stack.Status.Sources {
		if r.stack.Status.Sources[i].Addon == name {
			entry.Conditions = append(entry.Conditions, r.stack.Status.Sources[i].Conditions...)
		}
	}
	c.Type, c.ObservedGeneration = addonsv1.SourceAvailableCondition, r.stack.Generation
	meta.SetStatusCondition(&entry.Conditions, c)
	r.sources = append(r.sources, entry)
}

// maxAddress is what status.sources has room for, with what says that there is more.
const maxAddress = 2000 // bytes

// availability of an add-on's source, by what became of the add-on on the clusters
// that are at the newest revision. One failure is enough: of several, that which comes
// first in the alphabet, so that it is the same one in the next reconcile.
func availability(addon string, s *addonsv1.AddonStack, clusters []*addonsv1.ClusterAddon) metav1.Condition {
	c := notAsked()
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
	case reasons.Of(status.Reason).Is(reasons.SourceBad):
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: status.Reason, Message: status.Message}
	case status.Digest != "" || wasRead(status):
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: addonsv1.SourceAvailableReason}
	}
	return notAsked()
}

// wasRead says whether an add-on has a reason that is about what its source gave. That a
// template of the values fails is told before the source is asked.
func wasRead(status *addonsv1.AddonStatus) bool {
	return reasons.Of(status.Reason).Is(reasons.SourceRead) &&
		!strings.Contains(status.Message, fmt.Sprintf("addons[%s].valuesTemplate", status.Name))
}

func notAsked() metav1.Condition {
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

// orFailed is the condition, unless the last look for versions failed, or is the first
// and goes on.
func (f *following) orFailed(name string, c metav1.Condition) metav1.Condition {
	if f == nil || c.Status == metav1.ConditionFalse {
		return c
	}
	for _, failed := range f.failures {
		if failed.addon == name {
			about := "Looking for newer versions: "
			if f.waitsFor(name) {
				about = ""
			}
			said := failed.err.Error()
			if failed.err.Field != "" {
				said = failed.text()
			}
			return metav1.Condition{Status: metav1.ConditionFalse, Reason: failed.err.Reason, Message: about + shorten(said)}
		}
	}
	if f.waitsFor(name) {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: failure.ArtifactPending, Message: "Looking for its newest version"}
	}
	return c
}

// notAskedIn names the add-ons whose sources nobody has asked.
func notAskedIn(sources []addonsv1.StackSource) []string {
	var names []string
	for i := range sources {
		c := meta.FindStatusCondition(sources[i].Conditions, addonsv1.SourceAvailableCondition)
		if c != nil && c.Reason == addonsv1.SourceNotAskedReason {
			names = append(names, sources[i].Addon)
		}
	}
	return names
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
