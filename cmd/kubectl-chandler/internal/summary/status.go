// SPDX-License-Identifier: Apache-2.0

// Package summary makes of what was read what people ask for: how the fleet is, what is wrong, since when, and what to
// do. It only computes. Its types are the output of -o json.
package summary

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Verdict says whether all is well. It is the exit code of commands that give one.
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

	ofAddon bool `json:"-"` // each stack has one alone
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
	// OnVersion has the names of the clusters that have each one.
	OnVersion map[string][]string `json:"onVersion,omitempty"`
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
	case len(s.Waiting)+len(s.Progressing)+len(s.Held) > 0, slices.ContainsFunc(s.Stacks, func(is Stack) bool {
		return is.Ready != metav1.ConditionTrue && (!s.ofAddon || len(is.Addons[0].Phases[addonsv1.AddonReady]) < max(1, int(is.Clusters.Total)))
	}):
		return Waiting
	}
	return Well
}

// StatusOf sums up what was read, in one pass. With onlyStacks, add-ons of other stacks are left out.
func StatusOf(f *observed.Fleet, onlyStacks bool) *Status {
	g := &gathering{
		&Status{Instances: append([]addonsv1.ProviderInstance{}, f.Instances...), InstancesHidden: f.InstancesHidden, Held: []Held{}},
		map[types.NamespacedName]*Stack{}, onlyStacks, causes{standing.Keys{}, map[urgency]map[string]*Cause{failing: {}, waiting: {}, progressing: {}}},
	}
	for i := range f.Instances {
		pi := &f.Instances[i]
		last, conditions := pi.Status.HeartbeatTime, pi.Status.Conditions
		if !last.IsZero() && f.At.Sub(last.Time) > time.Duration(pi.Spec.ExpirySeconds)*time.Second { // who says so may be who is dead
			conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Reason: addonsv1.HeartbeatExpiredReason, LastTransitionTime: metav1.NewTime(last.Time),
				Message: "Its last heartbeat is too old: the process is gone, or can't reach the API server"}}
		}
		g.causes.addObject("ProviderInstance", pi, conditions)
	}
	g.Stacks = make([]Stack, len(f.Stacks))
	for i := range f.Stacks {
		g.causes.addObject("AddonStack", &f.Stacks[i], f.Stacks[i].Status.Conditions)
		is := &g.Stacks[i]
		*is = stackOf(&f.Stacks[i])
		if is.Reason == addonsv1.NoClusterMatchesReason || is.Reason == addonsv1.TooManyStacksReason { // no cluster says it
			g.causes.add(waiting, Cause{Namespace: is.Namespace, Kind: "AddonStack", Name: is.Name, Reason: is.Reason,
				Message: conditions.GetMessage(&f.Stacks[i], addonsv1.ReadyCondition)}, "", "", metav1.Time{})
		}
		g.stacks[types.NamespacedName{Namespace: is.Namespace, Name: is.Name}] = is
	}
	for i := range f.Clusters {
		g.addCluster(&f.Clusters[i])
	}
	for i := range g.Stacks {
		others := g.Stacks[i].Addons[len(f.Stacks[i].Spec.Addons):]
		slices.SortFunc(others, func(a, b Addon) int { return cmp.Compare(a.Name, b.Name) })
	}
	g.causes.dropTold()
	g.Failed, g.Waiting, g.Progressing = g.causes.list(failing), g.causes.list(waiting), g.causes.list(progressing)
	return g.Status
}

// StackStatus returns the status of one stack, and of what it has on its clusters. One that selects no cluster waits for some.
func StackStatus(f *observed.Fleet, s *addonsv1.AddonStack) *Status {
	is := StatusOf(&observed.Fleet{Stacks: []addonsv1.AddonStack{*s}, Clusters: f.Clusters}, true)
	c := meta.FindStatusCondition(s.Status.Conditions, addonsv1.ClustersReadyCondition)
	if c != nil && c.Reason == addonsv1.NoClusterMatchesReason && c.Status == metav1.ConditionTrue { // it never had any
		is.Waiting = append(is.Waiting, Cause{Namespace: s.Namespace, Kind: "AddonStack", Name: s.Name, Reason: c.Reason, Message: c.Message})
	}
	return is
}

// AddonStatus returns the status of the add-ons of a name, in all stacks that have one, and on the clusters that have it.
func AddonStatus(f *observed.Fleet, name string) *Status {
	with := *f
	with.Clusters = slices.DeleteFunc(slices.Clone(f.Clusters), func(ca addonsv1.ClusterAddon) bool {
		return !slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == name })
	})
	s := StatusOf(&with, false)
	for i := range s.Stacks {
		s.Stacks[i].Addons = slices.DeleteFunc(s.Stacks[i].Addons, func(a Addon) bool { return a.Name != name })
	}
	s.Stacks = slices.DeleteFunc(s.Stacks, func(is Stack) bool { return len(is.Addons) == 0 })
	for _, causes := range []*[]Cause{&s.Failed, &s.Waiting, &s.Progressing} {
		*causes = slices.DeleteFunc(*causes, func(c Cause) bool { return c.Addon != name && (c.Addon != "" || len(c.Clusters) == 0) })
	}
	s.Held, s.ofAddon = nil, true
	return s
}

// stackOf returns a stack without its clusters' add-ons.
func stackOf(s *addonsv1.AddonStack) Stack {
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
		is.addon(s.Spec.Addons[i].Name).DependsOn = s.Spec.Addons[i].DependsOn
	}
	for _, v := range s.Status.Following {
		if v.Addon != addonsv1.FollowedSource {
			is.addon(v.Addon).Available = v.Available
		}
	}
	return is
}

// addon returns the add-on of a name. Clusters may have some that the spec hasn't: of a bundle, or on their way out.
func (s *Stack) addon(name string) *Addon {
	at := slices.IndexFunc(s.Addons, func(a Addon) bool { return a.Name == name })
	if at < 0 {
		at = len(s.Addons)
		s.Addons = append(s.Addons, Addon{Name: name, Versions: map[string]int{}, OnVersion: map[string][]string{}, Phases: map[addonsv1.AddonPhase][]string{}})
	}
	return &s.Addons[at]
}
