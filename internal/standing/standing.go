// SPDX-License-Identifier: Apache-2.0

// Package standing says where the clusters of an AddonStack are with the revision that each is to have, and why, from the
// objects of the management cluster. The stack's counts, its rollout and kubectl-chandler all read it. It is pure.
package standing

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// State is where a cluster is with the stack's newest revision, as status.clusters counts it. A wave counts by time as well,
// see [rollout.Standing]: a source's answer fails a cluster at once here, and there once it isn't ready in time. A degraded
// add-on fails it there, and not here.
type State int

const (
	// Progressing is a cluster that is being brought to the revision.
	Progressing State = iota
	// Ready is a cluster that has it, with all its add-ons.
	Ready
	// Failed is a cluster with an add-on that failed, or whose source has answered that it doesn't give what is wanted.
	Failed
	// Waiting is a cluster that can't be worked on now.
	Waiting
)

// Of returns where a cluster is with the revision of the named stack that it is to have, by the status of its
// ClusterAddon. The revision has these add-ons. It returns why the cluster isn't ready, or won't be for long, too.
func Of(ca *addonsv1.ClusterAddon, name, wanted string, addons []addonsv1.Addon) (State, []Cause) {
	if c := stack.Blocking(ca); c != nil {
		return Waiting, []Cause{ofBlocking(ca.Name, c)}
	}
	assigned := stack.AssignedRevision(ca.Spec.Stacks, name)
	if assigned != wanted && stack.Assigned(ca.Spec.Stacks, name).HeldRemoval == nil {
		return Progressing, nil // a failure of an older revision is no news of this one
	}
	at := slices.IndexFunc(ca.Status.Stacks, func(is addonsv1.StackStatus) bool { return is.Name == name && is.Revision == assigned })
	if at < 0 {
		return Progressing, nil // what the status says is of another revision
	}
	why := ofCluster(ca)
	missing := stack.Presences(addons)
	maps.DeleteFunc(missing, func(_ string, present addonsv1.Present) bool { return present != addonsv1.PresentAlways }) // in the status if wanted
	for _, moved := range stack.Assigned(ca.Spec.Stacks, name).MovedAddons {
		delete(missing, moved) // another stack has it
	}
	for i := range ca.Status.Addons {
		addon := &ca.Status.Addons[i]
		if addon.Stack != name {
			continue
		}
		if addon.Reason == reasons.StackUnknown && ca.Status.Stacks[at].State != addonsv1.StackUnknown { // it is left, and no part of the stack
			why = append(why, Cause{Urgency: OnlyNoted, Addon: addon.Name, Message: addon.Message})
			continue
		}
		delete(missing, addon.Namespace+"/"+addon.Name)
		switch {
		case addon.Phase != addonsv1.AddonReady:
			why = append(why, OfAddon(ca.Name, addon))
		case addon.Message != "" && addon.Reason == "": // a source's reason is in SourcesReady
			why = append(why, Cause{Urgency: OnlyNoted, Addon: addon.Name, Message: addon.Message, Template: templateOf(addon.Message, ca.Name, false)})
		}
	}
	switch {
	case slices.ContainsFunc(why, func(c Cause) bool { return c.Urgency <= SourceRefuses }):
		return Failed, why
	case !slices.ContainsFunc(why, func(c Cause) bool { return c.Urgency != OnlyNoted }) && len(missing) == 0 && assigned == wanted:
		return Ready, why
	}
	return Progressing, why
}

// ofCluster returns what holds for all add-ons of a cluster.
func ofCluster(ca *addonsv1.ClusterAddon) (why []Cause) {
	if c := conditions.Get(ca, addonsv1.ClusterReachableCondition); c != nil && c.Message != "" {
		why = append(why, Cause{Urgency: OnlyNoted, Message: c.Message, Template: templateOf(c.Message, ca.Name, true)})
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil && c.Status == metav1.ConditionUnknown {
		why = append(why, ofBlocking(ca.Name, c))
	}
	return why
}
