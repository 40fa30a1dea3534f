// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// Cause is why something isn't well, with all clusters of the same cause.
type Cause struct {
	Namespace string `json:"namespace"`
	// Kind and Name are those of an object that isn't about clusters: an AddonStack or a ProviderInstance.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Stack and Addon are there if the cause is an add-on's.
	Stack   string              `json:"stack,omitempty"`
	Addon   string              `json:"addon,omitempty"`
	Phase   addonsv1.AddonPhase `json:"phase,omitempty"`
	Reason  string              `json:"reason"`
	Message string              `json:"message,omitempty"` // of the first cluster
	// IsExample says that other clusters have the message with other names, or are as far as theirs says.
	IsExample bool         `json:"isExample,omitempty"`
	Meaning   string       `json:"meaning,omitempty"` // of the reason, with the way out
	Clusters  []string     `json:"clusters,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"` // of the first cluster that had it
}

// urgency says in which part of a status a cause is.
type urgency int

const (
	failing urgency = iota
	waiting
	progressing
)

// causes are those of all clusters, by their urgency and all that equal ones have in common.
type causes struct {
	keys standing.Keys
	of   map[urgency]map[string]*Cause
}

// add adds a cause of a cluster, "" for none. Causes with another template, beside all else, are others.
func (c causes) add(urgency urgency, is Cause, template, cluster string, since metav1.Time) {
	key := fmt.Sprintf("%s %s %s %s %s %s %s", is.Namespace, is.Kind, is.Name, is.Stack, is.Addon, is.Phase, is.Reason)
	key = c.keys.Of(key, is.Message, template)
	cause := c.of[urgency][key]
	if cause == nil {
		cause, is.Meaning = &is, reasons.Meaning(is.Reason)
		c.of[urgency][key] = cause
	}
	cause.IsExample = cause.IsExample || cause.Message != is.Message
	if cluster != "" {
		cause.Clusters = append(cause.Clusters, cluster)
	}
	if !since.IsZero() && (cause.Since == nil || since.Before(cause.Since)) {
		cause.Since = &since
	}
}

// dropTold drops what an AddonStack says of its sources if an add-on of it says the same, with its clusters.
func (c causes) dropTold() {
	type source struct{ namespace, stack, reason string }
	told := map[source]bool{}
	for _, of := range c.of {
		for _, is := range of {
			told[source{is.Namespace, is.Stack, is.Reason}] = true // without a stack it is that of no AddonStack
		}
	}
	for _, of := range c.of {
		maps.DeleteFunc(of, func(_ string, is *Cause) bool {
			return is.Kind == "AddonStack" && told[source{is.Namespace, is.Name, is.Reason}]
		})
	}
}

// list returns the causes of one urgency, those of most clusters first.
func (c causes) list(of urgency) []Cause {
	list := []Cause{}
	for _, key := range slices.Sorted(maps.Keys(c.of[of])) {
		list = append(list, *c.of[of][key])
	}
	slices.SortStableFunc(list, func(a, b Cause) int { return cmp.Compare(len(b.Clusters), len(a.Clusters)) })
	return list
}

// addAddon adds why an add-on isn't Ready.
func (c causes) addAddon(ca *addonsv1.ClusterAddon, a *addonsv1.AddonStatus) {
	why, urgency := standing.OfAddon(ca.Name, a), waiting
	switch {
	case why.Urgency <= standing.SourceRefuses, a.Phase == addonsv1.AddonDegraded:
		urgency = failing
	case why.Urgency == standing.Passing:
		urgency = progressing
	}
	c.add(urgency, Cause{Namespace: ca.Namespace, Stack: a.Stack, Addon: a.Name, Phase: a.Phase, Reason: why.Reason, Message: why.Message},
		why.Template, ca.Name, a.Since)
}

// objectUrgency says how bad it is that a condition isn't True of an object that isn't about clusters, or that Paused is.
var objectUrgency = map[string]map[string]urgency{
	"ProviderInstance": {addonsv1.ReadyCondition: failing},
	"AddonStack": {
		addonsv1.ValidCondition: failing, addonsv1.SourcesReadyCondition: waiting, addonsv1.RolledOutCondition: progressing, addonsv1.PausedCondition: waiting,
	},
}

// addObject adds why an instance isn't Ready, or why a stack's spec isn't what runs, or won't be. No cluster tells that.
func (c causes) addObject(kind string, of metav1.Object, conditions []metav1.Condition) {
	for i := range conditions {
		is := &conditions[i]
		urgency, matters := objectUrgency[kind][is.Type]
		if !matters || (is.Status == metav1.ConditionTrue) != (is.Type == addonsv1.PausedCondition) || is.Reason == addonsv1.SourceNotAskedReason {
			continue
		}
		if reasons.Of(is.Reason).Stalls(addonsv1.AddonPending) {
			urgency = failing
		}
		switch addonsv1.RolloutPhase(is.Reason) {
		case addonsv1.RolloutHalted, addonsv1.RolloutRolledBack:
			urgency = failing
		case addonsv1.RolloutWaitingForApproval, addonsv1.RolloutWaitingForClusters, addonsv1.RolloutPaused:
			urgency = waiting
		}
		c.add(urgency, Cause{Namespace: of.GetNamespace(), Kind: kind, Name: of.GetName(), Reason: is.Reason, Message: is.Message},
			"", "", is.LastTransitionTime)
	}
}
