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
	// IsShared says that clusters with the same reason have the same cause, whatever their messages are.
	IsShared bool

	since time.Time // zero if that isn't known
}

// ToldIn returns how long it takes until people are told of the cause, 0 if they are now.
func (c Cause) ToldIn(now time.Time) time.Duration {
	if c.Urgency != Passing {
		return 0
	}
	return max(0, c.since.Add(tellAfter).Sub(now))
}

// String returns the words for people.
func (c Cause) String() string {
	parts := []string{c.Reason, c.Message}
	if c.Addon != "" {
		parts = append([]string{"add-on " + c.Addon}, parts...)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// key returns what the causes of two clusters have in common if they are one cause.
func (c Cause) key() string {
	if c.IsShared {
		c.Message = ""
	}
	return c.String()
}

// ofCondition returns why a cluster waits. A message that names the cluster is left out: the cause does that.
func ofCondition(c *metav1.Condition) Cause {
	is := Cause{Urgency: SomebodyActs, Reason: c.Reason, IsShared: true, since: c.LastTransitionTime.Time}
	if c.Status == metav1.ConditionUnknown && c.Reason != addonsv1.RecordsUnreadableReason {
		is.Urgency = Passing
	}
	if c.Type == addonsv1.ClusterReachableCondition || c.Type == addonsv1.AddonsReadyCondition {
		is.Message = c.Message
	}
	return is
}

// OfAddon returns why an add-on isn't ready. While it waits for what comes by itself, its message counts as equal
// on all clusters, as it says how far each one is.
func OfAddon(addon *addonsv1.AddonStatus) Cause {
	is := Cause{Urgency: SomebodyActs, Addon: addon.Name, Reason: cmp.Or(addon.Reason, string(addon.Phase)), Message: addon.Message, since: addon.Since.Time}
	switch reason := reasons.Of(addon.Reason); {
	case addon.Phase == addonsv1.AddonFailed:
		is.Urgency = AddonFailed
	case reason.Stalls(addon.Phase):
		is.Urgency = SourceRefuses
	case reason.Phase() == addonsv1.AddonDegraded: // with pods and numbers of each cluster
		is.IsShared = true
	case reason.Is(reasons.Passing):
		is.Urgency, is.IsShared = Passing, true
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
	shared := c[why.key()]
	if shared == nil {
		shared = &sharedCause{Cause: why}
		c[why.key()] = shared
	}
	shared.clusters = append(shared.clusters, cluster)
}

// Describe returns a text for each cause, as "cluster, cluster: cause": failures first, and of those the one of most clusters.
func (c Causes) Describe() []string {
	for _, shared := range c {
		slices.Sort(shared.clusters)
	}
	sorted := slices.SortedFunc(maps.Values(c), func(a, b *sharedCause) int {
		return cmp.Or(cmp.Compare(a.Urgency, b.Urgency), cmp.Compare(len(b.clusters), len(a.clusters)),
			slices.Compare(a.clusters, b.clusters), cmp.Compare(a.key(), b.key()))
	})
	texts := make([]string, 0, len(c))
	for _, shared := range sorted {
		texts = append(texts, message.Clusters(shared.clusters)+": "+shared.String())
	}
	return texts
}
