// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// gathering is one pass over what was read. It fills a status.
type gathering struct {
	*Status
	stacks     map[types.NamespacedName]*Stack
	onlyStacks bool
	causes     causes
}

// shows returns a stack of a cluster, nil if it isn't there, and whether to show what is of it.
func (g *gathering) shows(ca *addonsv1.ClusterAddon, name string) (*Stack, bool) {
	is := g.stacks[types.NamespacedName{Namespace: ca.Namespace, Name: name}]
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
	for _, name := range HeldOut(ca) {
		if _, shows := g.shows(ca, name); shows {
			g.causes.add(waiting, Cause{Namespace: ca.Namespace, Kind: "AddonStack", Name: name, Reason: "Held", Message: "Held out of changes of " + name +
				": kubectl chandler rollout hold " + name + " CLUSTER --release lets them take part"}, "", ca.Name, metav1.Time{})
		}
	}
	blocking := stack.Blocking(ca)
	unknown := blocking
	if c := meta.FindStatusCondition(ca.Status.Conditions, addonsv1.AddonsReadyCondition); unknown == nil && c != nil && c.Status == metav1.ConditionUnknown {
		unknown = c
	}
	if isShown && unknown != nil { // the cluster can't be worked on
		why := standing.OfCondition(ca.Name, unknown)
		g.causes.add(waiting, Cause{Namespace: ca.Namespace, Reason: why.Reason, Message: why.Message}, why.Template, ca.Name, unknown.LastTransitionTime)
	}
	for i := range ca.Status.Addons {
		a := &ca.Status.Addons[i]
		is, shows := g.shows(ca, a.Stack)
		if !shows {
			continue
		}
		if is != nil {
			addon := is.addon(a.Name)
			if addon.Phases[a.Phase] = append(addon.Phases[a.Phase], ca.Name); a.Version != "" {
				addon.Versions[a.Version]++
				addon.OnVersion[a.Version] = append(addon.OnVersion[a.Version], ca.Name)
			}
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

// HeldOut returns the stacks whose changes a cluster is held out of, in order.
func HeldOut(ca *addonsv1.ClusterAddon) []string {
	held := rollout.Held(ca)
	if held.Has(rollout.All) {
		held.Delete(rollout.All)
		for i := range ca.Spec.Stacks {
			held.Insert(ca.Spec.Stacks[i].Name)
		}
	}
	return sets.List(held)
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
