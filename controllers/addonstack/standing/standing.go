// SPDX-License-Identifier: Apache-2.0

// Package standing says where the clusters of an AddonStack are with the revision that each is to have, and why, from the
// statuses of their ClusterAddons. It is pure.
package standing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// State is where a cluster is with the stack's newest revision.
type State int

const (
	// Progressing is a cluster that is being brought to the revision.
	Progressing State = iota
	// Ready is a cluster that has it, with all its add-ons.
	Ready
	// Failed is a cluster with an add-on that failed, or whose source has answered that it doesn't give what is wanted.
	Failed
	// Waiting is a cluster that can't be worked on now.
	Waiting
)

// urgency says which causes are told first.
type urgency int

const (
	// addonFailed: an add-on did.
	addonFailed urgency = iota
	// sourceRefuses: an add-on's source has answered that it doesn't give what is wanted.
	sourceRefuses
	// somebodyActs: somebody is to do something, or has stopped the work.
	somebodyActs
	// passesByItself: people are told once it has lasted for tellAfter.
	passesByItself
	// onlyNoted: the cluster is ready all the same.
	onlyNoted
)

// tellAfter is how long something may pass by itself before people are told. An installation that goes well is told of
// in numbers only.
const tellAfter = 3 * time.Second

// Cause is why a cluster isn't ready.
type Cause struct {
	urgency urgency
	key     string // causes of clusters with the same one are one cause
	text    string
	since   time.Time // zero if that isn't known
}

// Of returns where a cluster is with the revision of the named stack that it is to have, by the status of its
// ClusterAddon. The revision has these add-ons. It returns why the cluster isn't ready, or won't be for long, too.
func Of(ca *addonsv1.ClusterAddon, name, wanted string, addons []addonsv1.Addon) (State, []Cause) {
	if c := stack.Blocking(ca); c != nil {
		return Waiting, []Cause{ofCondition(c)}
	}
	assigned := stack.AssignedRevision(ca.Spec.Stacks, name)
	if assigned != wanted && stack.Assigned(ca.Spec.Stacks, name).HeldRemoval == nil {
		return Progressing, nil // a failure of an older revision is no news of this one
	}
	if !slices.ContainsFunc(ca.Status.Stacks, func(is addonsv1.StackStatus) bool { return is.Name == name && is.Revision == assigned }) {
		return Progressing, nil // what the status says is of another revision
	}
	var why []Cause
	if c := conditions.Get(ca, addonsv1.ClusterReachableCondition); c != nil && c.Message != "" {
		why = append(why, noted(c.Message))
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil && c.Status == metav1.ConditionUnknown {
		why = append(why, ofCondition(c))
	}
	missing := stack.Presences(addons)
	maps.DeleteFunc(missing, func(_ string, present addonsv1.Present) bool { return present != addonsv1.PresentAlways }) // in the status if wanted
	for _, moved := range stack.Assigned(ca.Spec.Stacks, name).MovedAddons {
		delete(missing, moved) // another stack has it
	}
	for i := range ca.Status.Addons {
		addon := &ca.Status.Addons[i]
		if addon.Stack != name {
			continue
		}
		delete(missing, addon.Namespace+"/"+addon.Name)
		switch {
		case addon.Phase != addonsv1.AddonReady:
			why = append(why, OfAddon(addon))
		case addon.Message != "" && addon.Reason == "": // a source's reason is in SourcesReady
			why = append(why, noted("add-on "+addon.Name+": "+addon.Message))
		}
	}
	switch {
	case slices.ContainsFunc(why, func(c Cause) bool { return c.urgency <= sourceRefuses }):
		return Failed, why
	case !slices.ContainsFunc(why, func(c Cause) bool { return c.urgency != onlyNoted }) && len(missing) == 0 && assigned == wanted:
		return Ready, why
	}
	return Progressing, why
}

// ToldIn returns how long it takes until people are told of the cause, 0 if they are now.
func (c Cause) ToldIn(now time.Time) time.Duration {
	if c.urgency != passesByItself {
		return 0
	}
	return max(0, c.since.Add(tellAfter).Sub(now))
}

// noted returns a cause that keeps no cluster from being ready.
func noted(text string) Cause { return Cause{urgency: onlyNoted, key: text, text: text} }

// ofCondition returns why a cluster waits. A message that names the cluster is left out: the cause does that.
func ofCondition(c *metav1.Condition) Cause {
	is := Cause{urgency: somebodyActs, key: c.Reason, text: c.Reason, since: c.LastTransitionTime.Time}
	if c.Status == metav1.ConditionUnknown && c.Reason != addonsv1.RecordsUnreadableReason {
		is.urgency = passesByItself
	}
	if kind := c.Type; c.Message != "" && (kind == addonsv1.ClusterReachableCondition || kind == addonsv1.AddonsReadyCondition) {
		is.text += ": " + c.Message
	}
	return is
}

// OfAddon returns why an add-on isn't ready. While it waits for what comes by itself, its message counts as equal
// on all clusters, as it says how far each one is.
func OfAddon(addon *addonsv1.AddonStatus) Cause {
	is := Cause{urgency: somebodyActs, since: addon.Since.Time}
	is.text = "add-on " + addon.Name + ": " + cmp.Or(addon.Reason, string(addon.Phase))
	is.key = is.text
	if addon.Message != "" {
		is.text += ": " + addon.Message
	}
	switch {
	case addon.Phase == addonsv1.AddonFailed:
		is.urgency, is.key = addonFailed, is.text
	case reasons.Of(addon.Reason).Stalls(addon.Phase):
		is.urgency, is.key = sourceRefuses, is.text
	case reasons.Of(addon.Reason).Phase() == addonsv1.AddonDegraded: // with pods and numbers of each cluster
	case reasons.Of(addon.Reason).Is(reasons.Passing):
		is.urgency = passesByItself
	default:
		is.key = is.text
	}
	return is
}

// Causes are those of several clusters, by their keys.
type Causes map[string]*sharedCause

type sharedCause struct {
	Cause
	clusters []string
}

// Add notes why a cluster isn't ready. The words are those of the first cluster that is added.
func (c Causes) Add(cluster string, why Cause) {
	shared := c[why.key]
	if shared == nil {
		shared = &sharedCause{Cause: why}
		c[why.key] = shared
	}
	shared.clusters = append(shared.clusters, cluster)
}

// Describe returns a text for each cause, as "cluster, cluster: cause": failures first, and of those the one of most clusters.
func (c Causes) Describe() []string {
	for _, shared := range c {
		slices.Sort(shared.clusters)
	}
	sorted := slices.SortedFunc(maps.Values(c), func(a, b *sharedCause) int {
		return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(len(b.clusters), len(a.clusters)),
			slices.Compare(a.clusters, b.clusters), cmp.Compare(a.key, b.key))
	})
	texts := make([]string, 0, len(c))
	for _, shared := range sorted {
		texts = append(texts, message.Clusters(shared.clusters)+": "+shared.text)
	}
	return texts
}
