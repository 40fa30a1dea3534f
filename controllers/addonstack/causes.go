// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// shownClusters of many are in a message.
const shownClusters = 5

// causes holds the names of failed clusters by what failed there, as in "add-on web: HookFailed: ...".
type causes map[string][]string

// add notes the add-on that failed on a cluster.
func (c causes) add(cluster string, addon *addonsv1.AddonStatus) {
	cause := fmt.Sprintf("add-on %s: %s: %s", addon.Name, addon.Reason, addon.Message)
	c[cause] = append(c[cause], cluster)
}

// describe returns a text for each cause, the one of most clusters first: the names of the
// first clusters, then the cause.
func (c causes) describe() []string {
	type group struct{ clusters, cause string }
	groups := make([]group, 0, len(c))
	for cause, clusters := range c {
		slices.Sort(clusters)
		groups = append(groups, group{message.List(clusters, ", ", shownClusters), cause})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(c[b.cause]), len(c[a.cause])), strings.Compare(a.clusters, b.clusters), strings.Compare(a.cause, b.cause))
	})
	texts := make([]string, 0, len(groups))
	for _, g := range groups {
		texts = append(texts, g.clusters+": "+g.cause)
	}
	return texts
}
