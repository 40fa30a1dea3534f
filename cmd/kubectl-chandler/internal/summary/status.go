// SPDX-License-Identifier: Apache-2.0

// Package summary makes of what was read what people ask for: how the fleet is, what is wrong, since when, and what to
// do. It only computes. Its types are the output of -o json.
package summary

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/stack"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Verdict says whether all is well. It is the exit code of commands that judge.
type Verdict int

// Verdicts, the better first.
const (
	Well    Verdict = iota // all is as wanted
	Failed                 // something failed: somebody has to act
	Waiting                // nothing failed, and something waits or is on its way
)

// Status is how all stacks and clusters are.
type Status struct {
	Instances []addonsv1.ProviderInstance `json:"instances"`
	// InstancesHidden says that the user may not list ProviderInstances.
	InstancesHidden bool    `json:"instancesHidden,omitempty"`
	Stacks          []Stack `json:"stacks"`
	Failed          []Cause `json:"failed"`
	Waiting         []Cause `json:"waiting"`
	Progressing     []Cause `json:"progressing"`
	Held            []Held  `json:"held"`
	Drift           Drift   `json:"drift"`
	Notes           *Notes  `json:"notes,omitempty"`
}

// Notes are those of an add-on's chart, as it is installed on one cluster.
type Notes struct {
	Cluster string `json:"cluster"`
	Text    string `json:"text"`
}

// Stack is an AddonStack on its clusters.
type Stack struct {
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Revision  string                  `json:"revision,omitempty"`
	Clusters  addonsv1.ClusterCounts  `json:"clusters"`
	Updating  int32                   `json:"updating"`
	Ready     metav1.ConditionStatus  `json:"ready"`
	Reason    string                  `json:"reason,omitempty"`
	Since     *metav1.Time            `json:"since,omitempty"` // of Ready, while that isn't True
	Rollout   *addonsv1.RolloutStatus `json:"rollout,omitempty"`
	Addons    []Addon                 `json:"addons"`
}

// Addon is an add-on of a stack on all of its clusters.
type Addon struct {
	Name string `json:"name"`
	// Versions by the number of clusters that have them.
	Versions map[string]int `json:"versions,omitempty"`
	// Available is a newer version that isn't taken.
	Available string   `json:"available,omitempty"`
	DependsOn []string `json:"dependsOn,omitempty"`
	// Phases have the names of clusters on which the add-on is in each one.
	Phases map[addonsv1.AddonPhase][]string `json:"phases,omitempty"`
}

// Held is a removal that waits for confirmation.
type Held struct {
	Namespace    string                `json:"namespace"`
	Stack        string                `json:"stack"`
	Cause        addonsv1.RemovalCause `json:"cause"`
	Confirmation string                `json:"confirmation"`
	Addons       []string              `json:"addons"`
	Clusters     []string              `json:"clusters"`
}

// Drift counts what others changed and is left so.
type Drift struct {
	Objects  int64 `json:"objects"`
	Clusters int   `json:"clusters"`
}

// Versions are those of this command and of all instances.
type Versions struct {
	Client    string                      `json:"client"`
	Instances []addonsv1.ProviderInstance `json:"instances"`
}

// Verdict returns what all of the status comes to.
func (s *Status) Verdict() Verdict {
	switch {
	case len(s.Failed) > 0:
		return Failed
	case len(s.Waiting)+len(s.Progressing)+len(s.Held) > 0, slices.ContainsFunc(s.Stacks, func(is Stack) bool { return is.Ready != metav1.ConditionTrue }):
		return Waiting
	}
	return Well
}

// StatusOf sums up what was read. With onlyStacks, add-ons of other stacks are left out.
func StatusOf(f *observed.Fleet, onlyStacks bool) *Status {
	gathered := gather(f, onlyStacks)
	s := &Status{Instances: append([]addonsv1.ProviderInstance{}, f.Instances...), InstancesHidden: f.InstancesHidden, Stacks: []Stack{},
		Held: gathered.held, Drift: gathered.drift}
	for i := range f.Stacks {
		s.Stacks = append(s.Stacks, stackOf(&f.Stacks[i], gathered.addons))
	}
	s.Failed, s.Waiting, s.Progressing = gathered.causes.list(failing), gathered.causes.list(waiting), gathered.causes.list(progressing)
	return s
}

// StackStatus returns the status of one stack, and of what it has on its clusters.
func StackStatus(f *observed.Fleet, s *addonsv1.AddonStack) *Status {
	return StatusOf(&observed.Fleet{Stacks: []addonsv1.AddonStack{*s}, Clusters: f.Clusters}, true)
}

// AddonStatus returns the status of the add-ons of a name, in all stacks that have one.
func AddonStatus(f *observed.Fleet, name string) *Status {
	s := StatusOf(f, false)
	for i := range s.Stacks {
		s.Stacks[i].Addons = slices.DeleteFunc(s.Stacks[i].Addons, func(a Addon) bool { return a.Name != name })
	}
	s.Stacks = slices.DeleteFunc(s.Stacks, func(is Stack) bool { return len(is.Addons) == 0 })
	for _, causes := range []*[]Cause{&s.Failed, &s.Waiting, &s.Progressing} {
		*causes = slices.DeleteFunc(*causes, func(c Cause) bool { return c.Addon != name })
	}
	s.Held = nil
	return s
}

func stackOf(s *addonsv1.AddonStack, on map[addonKey]*Addon) Stack {
	is := Stack{
		Namespace: s.Namespace, Name: s.Name, Revision: s.Status.LatestRevision, Rollout: s.Status.Rollout,
		Clusters: ptr.Deref(s.Status.Clusters, addonsv1.ClusterCounts{}), Ready: metav1.ConditionUnknown, Addons: []Addon{},
	}
	is.Updating = stack.Progressing(is.Clusters)
	if ready := meta.FindStatusCondition(s.Status.Conditions, addonsv1.ReadyCondition); ready != nil {
		if is.Ready, is.Reason = ready.Status, ready.Reason; ready.Status != metav1.ConditionTrue {
			is.Since = &ready.LastTransitionTime
		}
	}
	for i := range s.Spec.Addons {
		a := &s.Spec.Addons[i]
		addon := ptr.Deref(on[addonKey{s.Namespace, s.Name, a.Name}], Addon{Name: a.Name})
		addon.DependsOn = a.DependsOn
		is.Addons = append(is.Addons, addon)
	}
	for _, key := range slices.SortedFunc(maps.Keys(on), func(a, b addonKey) int { return cmp.Compare(a.name, b.name) }) {
		isWanted := slices.ContainsFunc(s.Spec.Addons, func(a addonsv1.Addon) bool { return a.Name == key.name })
		if key.namespace == s.Namespace && key.stack == s.Name && !isWanted { // of a bundle, or on its way out
			is.Addons = append(is.Addons, *on[key])
		}
	}
	for _, v := range s.Status.Following {
		if at := slices.IndexFunc(is.Addons, func(a Addon) bool { return a.Name == v.Addon }); at >= 0 {
			is.Addons[at].Available = v.Available
		}
	}
	return is
}
