// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// gathering is one pass over what was read. It fills a status.
type gathering struct {
	*Status
	stacks     map[client.ObjectKey]*Stack
	onlyStacks bool
	causes     causes
}

// gather passes over instances, stacks and clusters once. It returns what isn't well, and puts all else into the status.
func gather(f *observed.Fleet, s *Status, onlyStacks bool) causes {
	g := &gathering{s, map[client.ObjectKey]*Stack{}, onlyStacks, causes{failing: {}, waiting: {}, progressing: {}}}
	for i := range f.Instances {
		g.causes.addObject("ProviderInstance", &f.Instances[i], f.Instances[i].Status.Conditions)
	}
	for i := range f.Stacks {
		g.causes.addObject("AddonStack", &f.Stacks[i], f.Stacks[i].Status.Conditions)
		s.Stacks[i] = stackOf(&f.Stacks[i])
		g.stacks[client.ObjectKeyFromObject(&f.Stacks[i])] = &s.Stacks[i]
	}
	for i := range f.Clusters {
		g.addCluster(&f.Clusters[i])
	}
	for i := range s.Stacks {
		others := s.Stacks[i].Addons[len(f.Stacks[i].Spec.Addons):]
		slices.SortFunc(others, func(a, b Addon) int { return cmp.Compare(a.Name, b.Name) })
	}
	return g.causes
}

// shows returns a stack of a cluster, nil if it isn't there, and whether to show what is of it.
func (g *gathering) shows(ca *addonsv1.ClusterAddon, name string) (*Stack, bool) {
	is := g.stacks[client.ObjectKey{Namespace: ca.Namespace, Name: name}]
	return is, is != nil || !g.onlyStacks
}

func (g *gathering) addCluster(ca *addonsv1.ClusterAddon) {
	isShown, drifted := false, int64(0)
	for i := range ca.Spec.Stacks {
		if _, shows := g.shows(ca, ca.Spec.Stacks[i].Name); shows {
			isShown = true
			g.addHeld(ca, &ca.Spec.Stacks[i])
		}
	}
	blocking := stack.Blocking(ca)
	unknown := blocking
	if c := meta.FindStatusCondition(ca.Status.Conditions, addonsv1.AddonsReadyCondition); unknown == nil && c != nil && c.Status == metav1.ConditionUnknown {
		unknown = c
	}
	if isShown && unknown != nil { // the cluster can't be worked on
		g.causes.add(waiting, Cause{Namespace: ca.Namespace, Reason: unknown.Reason, Message: unknown.Message}, true, ca.Name, unknown.LastTransitionTime)
	}
	for i := range ca.Status.Addons {
		a := &ca.Status.Addons[i]
		is, shows := g.shows(ca, a.Stack)
		if !shows {
			continue
		}
		if is != nil {
			is.addon(a.Name).add(ca.Name, a)
		}
		if blocking == nil && a.Phase != addonsv1.AddonReady { // what the status says is old otherwise
			g.causes.addAddon(ca, a)
		}
		if a.Drift != nil {
			drifted += int64(a.Drift.Objects)
		}
	}
	if g.Drift.Objects += drifted; drifted > 0 {
		g.Drift.Clusters++
	}
}

// add counts a cluster that has the add-on.
func (a *Addon) add(cluster string, is *addonsv1.AddonStatus) {
	if is.Version != "" {
		a.Versions[is.Version]++
	}
	a.Phases[is.Phase] = append(a.Phases[is.Phase], cluster)
}

// addHeld adds what of a stack is held on a cluster.
func (s *Status) addHeld(ca *addonsv1.ClusterAddon, assigned *addonsv1.StackRevision) {
	held := assigned.HeldRemoval
	if held == nil {
		return
	}
	at := slices.IndexFunc(s.Held, func(h Held) bool {
		return h.Namespace == ca.Namespace && h.Stack == assigned.Name && h.Confirmation == held.Confirmation
	})
	if at < 0 {
		at = len(s.Held)
		s.Held = append(s.Held, Held{Namespace: ca.Namespace, Stack: assigned.Name, Cause: held.Cause, Confirmation: held.Confirmation})
	}
	h := &s.Held[at]
	h.Clusters = append(h.Clusters, ca.Name)
	h.Addons = slices.Compact(slices.Sorted(slices.Values(append(h.Addons, held.Addons...))))
}

// MostFirst returns versions, those of most clusters first.
func (a *Addon) MostFirst() []string {
	return slices.SortedFunc(maps.Keys(a.Versions), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.Versions[y], a.Versions[x]), cmp.Compare(x, y))
	})
}
