// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Keeps returns which of the stack's add-ons an assignment keeps on a cluster, as "namespace/name". At a revision that isn't in force
// the cluster stays unchanged, and loses none. The revision that is assigned now says which add-ons are there already.
func (c *Stack) Keeps(wanted addonsv1.StackRevision, assigned string) (kept sets.Set[string], unchanged bool) {
	if wanted.Revision == "" || c.Revision != wanted.Revision && (c.Steps == nil || wanted.Revision == assigned) {
		return c.ReleasesAt(wanted.Revision).Delete(wanted.MovedAddons...), true // also what another stack gives back
	}
	are := stack.Presences(c.Spec.Addons)
	if c.Revision != wanted.Revision { // the rollout has another target
		are = c.presencesAt(wanted.Revision)
	}
	were := are
	if assigned != wanted.Revision {
		were = c.presencesAt(assigned)
	}
	kept = sets.New[string]()
	for release, present := range are {
		if (present == addonsv1.PresentAlways || were[release] == present) && !slices.Contains(wanted.MovedAddons, release) {
			kept.Insert(release)
		}
	}
	return kept, false
}

// AllowsDropping reports whether a release, as "namespace/name", may go from all clusters.
func (c *Stack) AllowsDropping(release string) bool {
	_, name, _ := strings.Cut(release, "/")
	return c.Spec.AllowedRemovals != nil && slices.Contains(c.Spec.AllowedRemovals.Addons, name)
}

// AllowsLeaving reports whether the stack lets the Cluster lose all of it. The revision that is assigned has to select the
// Cluster as it is now: then an edit takes it away, and no change of labels.
func (c *Stack) AllowsLeaving(cluster *member.Member, assigned string) bool {
	previous := stack.SpecAt(c.Revisions, assigned)
	return previous != nil && selects(previous, cluster) && selectsLeaving(&c.Spec, cluster)
}

// selectsLeaving reports whether spec.allowedRemovals selects the Cluster.
func selectsLeaving(spec *addonsv1.AddonStackSpec, cluster *member.Member) bool {
	if spec.AllowedRemovals == nil || spec.AllowedRemovals.ClusterSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.AllowedRemovals.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(cluster.Labels))
}
