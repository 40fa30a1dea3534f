// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// held are the removals of a stack that wait for confirmation.
type held struct {
	clusters      []string
	addons        sets.Set[string]
	confirmations map[string]*addonsv1.HeldRemoval
	having        int // clusters to which the stack is assigned
}

// heldRemovals collects what is held of the stack on the namespace's clusters.
func heldRemovals(s *addonsv1.AddonStack, all *addonsv1.ClusterAddonList) held {
	h := held{addons: sets.New[string](), confirmations: map[string]*addonsv1.HeldRemoval{}}
	for i := range all.Items {
		ca := &all.Items[i]
		for _, assigned := range ca.Spec.Stacks {
			if assigned.Name != s.Name {
				continue
			}
			h.having++
			if assigned.HeldRemoval != nil {
				h.clusters = append(h.clusters, ca.Name)
				h.addons.Insert(assigned.HeldRemoval.Addons...)
				h.confirmations[assigned.HeldRemoval.Confirmation] = assigned.HeldRemoval
			}
		}
	}
	slices.Sort(h.clusters)
	return h
}

// describe returns what would go, and the ways out.
func (h held) describe(s *addonsv1.AddonStack) string {
	text := fmt.Sprintf("The removal of %s from %d of %d clusters is held, as it is beyond spec.removalLimit: %s. Nothing of it is removed. ",
		message.List(sets.List(h.addons), ", ", message.Few), len(h.clusters), h.having, message.Clusters(h.clusters))
	if len(h.confirmations) > 1 {
		return text + "Several changes are held: spec.stacks of each ClusterAddon names its confirmation"
	}
	for _, only := range h.confirmations {
		text += stack.HeldWaysOut(s.Namespace, only)
	}
	return text
}

const (
	// maxNote leaves room in an event's note, which has up to 1024 bytes.
	maxNote = 1000
	// maxProblem leaves room for what a message says beside what is wrong.
	maxProblem = 900
)

// firstOf joins the first few of many texts, in about maxProblem bytes.
func firstOf(texts []string) string {
	shown := slices.Clone(texts)
	few := min(len(shown), message.Few)
	for i := range few {
		shown[i] = message.Shorten(shown[i], maxProblem/few)
	}
	return message.FirstFew(shown)
}

// first returns the first element for which a function returns true, nil if there is none.
func first[T any](list []T, matches func(*T) bool) *T {
	for i := range list {
		if matches(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
