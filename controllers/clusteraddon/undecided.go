// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// undecided is an assigned stack of which it isn't known what it wants.
type undecided struct {
	why string
	// keeps says that what the stack installed is still its own. Not so, if another
	// instance looks after the stack: it may have been handed over with the Cluster.
	keeps bool
	// awaited says that the stack may want what no other one has any more.
	awaited bool
	// quiet says that the add-ons' statuses stay as they are: the stack has just gone, and
	// the assignment follows in a moment, or its removal is held, of which the condition tells.
	quiet bool
}

// undecide notes why nothing is known of what a stack wants. If another instance looks
// after it, and it has run here, it isn't awaited: it may have stayed behind for good
// when the Cluster was handed over.
func (p *pass) undecide(a addonsv1.StackRevision, written *addonsv1.AddonStack) {
	why := "AddonStack %s has no valid revision that this instance can see: see the stack's watch label"
	if written != nil {
		why = "AddonStack %s has no valid revision yet: see its conditions"
	}
	p.undecided[a.Name] = undecided{
		why:     fmt.Sprintf(why, a.Name),
		keeps:   written != nil,
		awaited: written != nil || a.Revision == "",
	}
}

// firstAwaited returns the name of the first stack that is awaited; false if none is.
func firstAwaited(stacks map[string]undecided) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		if stacks[name].awaited {
			return name, true
		}
	}
	return "", false
}

// openQuestions are why stacks are undecided whose add-ons this cluster is to have, or has.
func (p *pass) openQuestions() []string {
	has := sets.New[string]()
	for _, record := range p.installed {
		has.Insert(record.Stack)
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(p.undecided)) {
		if stack := p.undecided[name]; !stack.quiet && (has.Has(name) || stack.awaited) {
			texts = append(texts, stack.why)
		}
	}
	return texts
}
