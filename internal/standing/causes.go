// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// Urgency says which causes are told first.
type Urgency int

// Urgencies of causes.
const (
	// AddonFailed says that an add-on did.
	AddonFailed Urgency = iota
	// SourceRefuses says that an add-on's source has answered that it doesn't give what is wanted.
	SourceRefuses
	// SomebodyActs says that somebody is to do something, or has stopped the work.
	SomebodyActs
	// Passing says that it passes by itself: people are told once it has lasted for tellAfter.
	Passing
	// OnlyNoted says that the cluster is ready all the same.
	OnlyNoted
)

// tellAfter is how long something may pass by itself before people are told. An installation that goes well is told of
// in numbers only.
const tellAfter = 3 * time.Second

// Cause is why a cluster isn't ready.
type Cause struct {
	Urgency Urgency
	Addon   string // "" if it isn't one
	Reason  string // "" if it is only noted
	Message string // "" for none
	// Template is what the messages of clusters with the same cause have in common, beside the reason.
	Template string

	since time.Time // zero if that isn't known
}

// ToldIn returns how long it takes until people are told of the cause, 0 if they are now.
func (c Cause) ToldIn(now time.Time) time.Duration {
	if c.Urgency != Passing {
		return 0
	}
	return max(0, c.since.Add(tellAfter).Sub(now))
}

// text returns the words for people, with a message.
func (c Cause) text(message string) string {
	parts := []string{c.Reason, message}
	if c.Addon != "" {
		parts = append([]string{"add-on " + c.Addon}, parts...)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// OfCondition returns why a cluster waits.
func OfCondition(cluster string, c *metav1.Condition) Cause {
	is := Cause{Urgency: SomebodyActs, Reason: c.Reason, Message: c.Message, since: c.LastTransitionTime.Time}
	is.Template = templateOf(c.Message, cluster, c.Type == addonsv1.ClusterReachableCondition)
	return is
}

// ofBlocking returns why a cluster waits, as an AddonStack tells it. A message that names the cluster is left out: the cause does that.
func ofBlocking(cluster string, c *metav1.Condition) Cause {
	is := OfCondition(cluster, c)
	if c.Status == metav1.ConditionUnknown && c.Reason != addonsv1.RecordsUnreadableReason {
		is.Urgency = Passing
	}
	if c.Type != addonsv1.ClusterReachableCondition && c.Type != addonsv1.AddonsReadyCondition {
		is.Message, is.Template = "", ""
	}
	return is
}

// OfAddon returns why an add-on of a cluster isn't ready. While it waits for what comes by itself, its message counts as equal
// on all clusters, as it says how far each one is.
func OfAddon(cluster string, addon *addonsv1.AddonStatus) Cause {
	is := Cause{Urgency: SomebodyActs, Addon: addon.Name, Reason: cmp.Or(addon.Reason, string(addon.Phase)), Message: addon.Message, since: addon.Since.Time}
	reason := reasons.Of(addon.Reason)
	switch {
	case addon.Phase == addonsv1.AddonFailed:
		is.Urgency = AddonFailed
	case reason.Stalls(addon.Phase):
		is.Urgency = SourceRefuses
	case reason.Phase() == addonsv1.AddonDegraded:
		is.Template = brokenPart(addon.Message)
		return is
	case reason.Is(reasons.Passing):
		is.Urgency = Passing
		return is
	}
	is.Template = templateOf(addon.Message, cluster, false)
	return is
}

// Causes are those of several clusters.
type Causes struct {
	keys   Keys
	shared map[string]*sharedCause
}

type sharedCause struct {
	Cause
	clusters []string
	example  string // cluster whose message it is, "" if all have it
}

// Add notes why a cluster isn't ready. The message is that of the first cluster that is added, and is told as an example if
// others have another one.
func (c *Causes) Add(cluster string, why Cause) {
	if c.shared == nil {
		c.keys, c.shared = Keys{}, map[string]*sharedCause{}
	}
	key := c.keys.Of(why.text(""), why.Message, why.Template)
	shared := c.shared[key]
	if shared == nil {
		shared = &sharedCause{Cause: why}
		c.shared[key] = shared
	} else if why.Message != shared.Message && shared.example == "" {
		shared.example = shared.clusters[0]
	}
	shared.clusters = append(shared.clusters, cluster)
}

// Describe returns a text for each cause, as "cluster, cluster: cause": failures first, and of those the one of most clusters.
func (c *Causes) Describe() []string {
	for _, shared := range c.shared {
		slices.Sort(shared.clusters)
	}
	sorted := slices.SortedFunc(maps.Values(c.shared), func(a, b *sharedCause) int {
		return cmp.Or(cmp.Compare(a.Urgency, b.Urgency), cmp.Compare(len(b.clusters), len(a.clusters)),
			slices.Compare(a.clusters, b.clusters), cmp.Compare(a.text(a.Message), b.text(b.Message)))
	})
	texts := make([]string, 0, len(c.shared))
	for _, shared := range sorted {
		text := shared.Message
		if shared.example != "" {
			text = "on " + shared.example + ", " + text
		}
		texts = append(texts, message.Clusters(shared.clusters)+": "+shared.text(text))
	}
	return texts
}
