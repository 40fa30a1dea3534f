// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// addonKey names an add-on of a stack, on all clusters.
type addonKey struct{ namespace, stack, name string }

// gathered is what one pass over the clusters finds.
type gathered struct {
	addons map[addonKey]*Addon
	causes causes
	held   []Held
	drift  Drift
}

// gather passes over instances, stacks and clusters once.
func gather(f *observed.Fleet, onlyStacks bool) *gathered {
	g := &gathered{addons: map[addonKey]*Addon{}, causes: causes{}, held: []Held{}}
	for i := range f.Instances {
		g.causes.addInstance(&f.Instances[i])
	}
	shown := map[addonKey]bool{}
	for i := range f.Stacks {
		shown[addonKey{namespace: f.Stacks[i].Namespace, stack: f.Stacks[i].Name}] = true
		g.causes.addStack(&f.Stacks[i])
	}
	shows := func(namespace, stack string) bool {
		return !onlyStacks || shown[addonKey{namespace: namespace, stack: stack}]
	}
	for i := range f.Clusters {
		g.addCluster(&f.Clusters[i], shows)
	}
	return g
}

func (g *gathered) addCluster(ca *addonsv1.ClusterAddon, shows func(namespace, stack string) bool) {
	isShown, drifted := false, int64(0)
	for i := range ca.Spec.Stacks {
		if assigned := &ca.Spec.Stacks[i]; shows(ca.Namespace, assigned.Name) {
			isShown = true
			g.addHeld(ca, assigned)
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
		if !shows(ca.Namespace, a.Stack) {
			continue
		}
		g.addAddon(ca, a)
		if blocking == nil && a.Phase != addonsv1.AddonReady { // what the status says is old otherwise
			g.causes.addAddon(ca, a)
		}
		if a.Drift != nil {
			drifted += int64(a.Drift.Objects)
		}
	}
	if g.drift.Objects += drifted; drifted > 0 {
		g.drift.Clusters++
	}
}

func (g *gathered) addAddon(ca *addonsv1.ClusterAddon, a *addonsv1.AddonStatus) {
	key := addonKey{ca.Namespace, a.Stack, a.Name}
	addon := g.addons[key]
	if addon == nil {
		addon = &Addon{Name: a.Name, Versions: map[string]int{}, Phases: map[addonsv1.AddonPhase][]string{}}
		g.addons[key] = addon
	}
	if a.Version != "" {
		addon.Versions[a.Version]++
	}
	addon.Phases[a.Phase] = append(addon.Phases[a.Phase], ca.Name)
}

func (g *gathered) addHeld(ca *addonsv1.ClusterAddon, assigned *addonsv1.StackRevision) {
	held := assigned.HeldRemoval
	if held == nil {
		return
	}
	at := slices.IndexFunc(g.held, func(h Held) bool {
		return h.Namespace == ca.Namespace && h.Stack == assigned.Name && h.Confirmation == held.Confirmation
	})
	if at < 0 {
		at = len(g.held)
		g.held = append(g.held, Held{Namespace: ca.Namespace, Stack: assigned.Name, Cause: held.Cause, Confirmation: held.Confirmation})
	}
	h := &g.held[at]
	h.Clusters = append(h.Clusters, ca.Name)
	h.Addons = slices.Compact(slices.Sorted(slices.Values(append(h.Addons, held.Addons...))))
}

// MostFirst returns versions, those of most clusters first.
func (a *Addon) MostFirst() []string {
	return slices.SortedFunc(maps.Keys(a.Versions), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.Versions[y], a.Versions[x]), cmp.Compare(x, y))
	})
}
