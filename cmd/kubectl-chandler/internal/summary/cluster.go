// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Cluster is why one cluster is as it is.
type Cluster struct {
	Namespace   string                 `json:"namespace"`
	Name        string                 `json:"name"`
	Ready       metav1.ConditionStatus `json:"ready"`
	Since       *metav1.Time           `json:"since,omitempty"`
	ReadyAddons string                 `json:"readyAddons,omitempty"`
	// Conditions are those that aren't as wanted.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Addons     []AddonOnCluster   `json:"addons"`
	Held       []Held             `json:"held,omitempty"`
	// HeldOut are the stacks whose changes it is held out of.
	HeldOut []string `json:"heldOut,omitempty"`
	// Stacks that the cluster has.
	Stacks int `json:"stacks"`
	// Revisions are those of its stacks.
	Revisions []StackOnCluster `json:"revisions,omitempty"`
}

// StackOnCluster is the revision of a stack that a cluster is to have.
type StackOnCluster struct {
	Stack    string `json:"stack"`
	Revision string `json:"revision,omitempty"`
	// Newest is the newest revision of the stack, and WaitsFor why the cluster hasn't got that, both "" if it has.
	Newest   string `json:"newest,omitempty"`
	WaitsFor string `json:"waitsFor,omitempty"`
}

// AddonOnCluster is an add-on of one cluster, with the meaning of its reason.
type AddonOnCluster struct {
	addonsv1.AddonStatus
	StackRevision string `json:"stackRevision,omitempty"`
	// Meaning says what the reason means, and the way out.
	Meaning string `json:"meaning,omitempty"`
	// SameOn are other clusters on which the add-on has the reason. FineOn is on how many it is Ready, and AtRevision how
	// many of these have the stack at the same revision.
	SameOn     []string `json:"sameOn,omitempty"`
	FineOn     int      `json:"fineOn,omitempty"`
	AtRevision int      `json:"atRevision,omitempty"`
}

// IsBad reports whether somebody has to act on the add-on.
func (a AddonOnCluster) IsBad() bool {
	return a.Phase == addonsv1.AddonDegraded || reasons.Of(a.Reason).Stalls(a.Phase)
}

// Verdict returns what the cluster comes to.
func (c *Cluster) Verdict() Verdict {
	switch {
	case slices.ContainsFunc(c.Addons, AddonOnCluster.IsBad):
		return Failed
	case c.Ready != metav1.ConditionTrue || len(c.Held)+len(c.HeldOut) > 0:
		return Waiting
	}
	return Well
}

// ClusterOf returns why a cluster is as it is. The other clusters tell where else something is so.
func ClusterOf(f *observed.Fleet, ca *addonsv1.ClusterAddon) *Cluster {
	is := &Cluster{Namespace: ca.Namespace, Name: ca.Name, Ready: metav1.ConditionUnknown, ReadyAddons: ca.Status.ReadyAddons, Addons: []AddonOnCluster{},
		HeldOut: HeldOut(ca), Stacks: len(ca.Spec.Stacks)}
	if ready := meta.FindStatusCondition(ca.Status.Conditions, addonsv1.ReadyCondition); ready != nil {
		is.Ready, is.Since = ready.Status, &ready.LastTransitionTime
	}
	blocking := stack.Blocking(ca)
	for _, c := range ca.Status.Conditions {
		switch {
		case c.Type == addonsv1.ReadyCondition, c.Type == addonsv1.AddonsReadyCondition && c.Status != metav1.ConditionUnknown: // add-ons say it
		case c.Message != "", blocking != nil && blocking.Type == c.Type:
			is.Conditions = append(is.Conditions, c)
		}
	}
	is.Held = StatusOf(&observed.Fleet{Clusters: []addonsv1.ClusterAddon{*ca}}, false).Held
	for i := range ca.Status.Addons {
		is.Addons = append(is.Addons, addonOn(f, ca, &ca.Status.Addons[i]))
	}
	for i := range ca.Spec.Stacks {
		is.Revisions = append(is.Revisions, stackOn(f, ca, &ca.Spec.Stacks[i]))
	}
	slices.SortStableFunc(is.Addons, func(a, b AddonOnCluster) int {
		return cmp.Compare(slices.Index(stack.Phases, a.Phase), slices.Index(stack.Phases, b.Phase))
	})
	return is
}

// stackOn returns the revision that a cluster is to have of a stack, and what the newest one waits for.
func stackOn(f *observed.Fleet, ca *addonsv1.ClusterAddon, assigned *addonsv1.StackRevision) StackOnCluster {
	is := StackOnCluster{Stack: assigned.Name, Revision: assigned.Revision}
	at := slices.IndexFunc(f.Stacks, func(s addonsv1.AddonStack) bool { return s.Namespace == ca.Namespace && s.Name == assigned.Name })
	if at < 0 {
		is.WaitsFor = "the removal of its add-ons, as the AddonStack is gone"
		return is
	}
	s := &f.Stacks[at]
	rolledOut := meta.FindStatusCondition(s.Status.Conditions, addonsv1.RolledOutCondition)
	switch newest := s.Status.LatestRevision; {
	case newest == assigned.Revision && stack.StatusOf(&ca.Status, s.Name).Revision == newest:
		return is
	case newest == assigned.Revision && stack.Blocking(ca) != nil:
		is.WaitsFor = "the cluster: " + stack.Blocking(ca).Reason
	case newest == assigned.Revision:
		is.WaitsFor = "Chandler, which hasn't begun with it on this cluster"
	case assigned.HeldRemoval != nil:
		is.Newest, is.WaitsFor = newest, "a confirmation, as it removes add-ons: kubectl chandler confirm "+s.Name
	case rollout.IsHeld(ca, s.Name):
		is.Newest, is.WaitsFor = newest, "the end of a hold: kubectl chandler rollout hold "+s.Name+" "+ca.Name+" --release"
	case rolledOut != nil && rolledOut.Status != metav1.ConditionTrue:
		is.Newest, is.WaitsFor = newest, "the rollout, which is "+rolledOut.Reason+". "+rolledOut.Message
	default:
		is.Newest, is.WaitsFor = newest, "Chandler, which is on the way to it"
	}
	return is
}

func addonOn(f *observed.Fleet, ca *addonsv1.ClusterAddon, a *addonsv1.AddonStatus) AddonOnCluster {
	is := AddonOnCluster{AddonStatus: *a, StackRevision: stack.AssignedRevision(ca.Spec.Stacks, a.Stack)}
	if a.Phase == addonsv1.AddonReady {
		return is
	}
	is.Meaning = reasons.Meaning(a.Reason)
	for i := range f.Clusters {
		other := &f.Clusters[i]
		if other.Namespace != ca.Namespace || other.Name == ca.Name {
			continue
		}
		for k := range other.Status.Addons {
			switch b := &other.Status.Addons[k]; {
			case b.Stack != a.Stack || b.Name != a.Name:
			case b.Phase == addonsv1.AddonReady:
				if is.FineOn++; stack.AssignedRevision(other.Spec.Stacks, a.Stack) == is.StackRevision {
					is.AtRevision++
				}
			case b.Phase == a.Phase && b.Reason == a.Reason:
				is.SameOn = append(is.SameOn, other.Name)
			}
		}
	}
	return is
}
