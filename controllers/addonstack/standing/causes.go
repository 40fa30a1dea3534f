// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cluster-chandler/chandler/internal/message"
)

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
