// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// heldRemovals returns what would go from the clusters by removals of the stack that wait for confirmation, and the ways out.
// It returns "" if none does.
func heldRemovals(s *addonsv1.AddonStack, all *addonsv1.ClusterAddonList) string {
	var clusters []string
	addons, confirmations, having := sets.New[string](), map[string]*addonsv1.HeldRemoval{}, 0
	for i := range all.Items {
		assigned := stack.Assigned(all.Items[i].Spec.Stacks, s.Name)
		if assigned.Name != "" {
			having++
		}
		if held := assigned.HeldRemoval; held != nil {
			clusters = append(clusters, all.Items[i].Name)
			addons.Insert(held.Addons...)
			confirmations[held.Confirmation] = held
		}
	}
	if len(clusters) == 0 {
		return ""
	}
	slices.Sort(clusters)
	text := fmt.Sprintf("The removal of %s from %d of %d clusters is held, as it is beyond spec.removalLimit: %s. Nothing of it is removed. ",
		message.List(sets.List(addons), ", ", message.Few), len(clusters), having, message.Clusters(clusters))
	if len(confirmations) > 1 {
		return text + "Several changes are held: spec.stacks of each ClusterAddon names its confirmation"
	}
	for _, only := range confirmations {
		text += stack.HeldWaysOut(s.Namespace, only)
	}
	return text
}
