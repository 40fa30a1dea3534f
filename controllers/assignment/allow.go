// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// unallowed returns which of the losses of a stack, as [losses] has them, its spec.allowedRemovals doesn't allow.
func unallowed(cluster *member.Member, ca *addonsv1.ClusterAddon, wanted []addonsv1.StackRevision, target *candidate, lost []string) []string {
	switch {
	case target == nil || target.spec.AllowedRemovals == nil:
	case names(wanted, target.name):
		return slices.DeleteFunc(slices.Clone(lost), target.allowsDropping)
	case target.allowsLeaving(cluster, stack.AssignedRevision(ca.Spec.Stacks, target.name)):
		return nil
	}
	return lost
}

// allowsDropping reports whether a release, as "namespace/name", may go from all clusters.
func (c *candidate) allowsDropping(release string) bool {
	_, name, _ := strings.Cut(release, "/")
	return slices.Contains(c.spec.AllowedRemovals.Addons, name)
}

// allowsLeaving reports whether the newest revision lets the Cluster lose all of the stack. The revision that is assigned
// must not have allowed it: then it is the change to the newest one that was meant.
func (c *candidate) allowsLeaving(cluster *member.Member, assigned string) bool {
	previous := stack.SpecAt(c.revisions, assigned)
	return previous != nil && !selectsLeaving(previous, cluster) && selectsLeaving(&c.spec, cluster)
}

// selectsLeaving reports whether spec.allowedRemovals selects the Cluster.
func selectsLeaving(spec *addonsv1.AddonStackSpec, cluster *member.Member) bool {
	if spec.AllowedRemovals == nil || spec.AllowedRemovals.ClusterSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.AllowedRemovals.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(cluster.Labels))
}
