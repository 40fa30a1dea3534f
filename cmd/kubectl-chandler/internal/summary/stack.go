// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
)

// Why is why a stack, or an add-on of any stack, is as it is on all of its clusters.
type Why struct {
	Stacks []Stack `json:"stacks"`
	// Conditions are those of the stack that have a message; none for an add-on.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Causes     []CauseMeant       `json:"causes"`
	Held       []Held             `json:"held,omitempty"`
	verdict    Verdict
}

// CauseMeant is a cause with the meaning of its reason, and the way out.
type CauseMeant struct {
	Cause
	Meaning string `json:"meaning,omitempty"`
}

// Verdict returns what all comes to.
func (w *Why) Verdict() Verdict { return w.verdict }

// StackWhy returns why a stack is as it is. Causes of clusters that it isn't assigned to are left out.
func StackWhy(f *observed.Fleet, s *addonsv1.AddonStack) *Why {
	only := &observed.Fleet{Stacks: []addonsv1.AddonStack{*s}, Clusters: f.Clusters}
	w := whyOf(StatusOf(only, true), func(Cause) bool { return true })
	for _, c := range s.Status.Conditions {
		if c.Message != "" && c.Type != addonsv1.StalledCondition && c.Type != addonsv1.ReadyCondition {
			w.Conditions = append(w.Conditions, c)
		}
	}
	if ready := meta.FindStatusCondition(s.Status.Conditions, addonsv1.ReadyCondition); w.verdict == Well && (ready == nil || ready.Status != metav1.ConditionTrue) {
		w.verdict = Waiting
	}
	return w
}

// AddonWhy returns why the add-ons of a name are as they are, in all stacks that have one.
func AddonWhy(f *observed.Fleet, name string) *Why {
	status := StatusOf(f, false)
	for i := range status.Stacks {
		s := &status.Stacks[i]
		s.Addons = slices.DeleteFunc(s.Addons, func(a Addon) bool { return a.Name != name })
	}
	status.Stacks = slices.DeleteFunc(status.Stacks, func(s Stack) bool { return len(s.Addons) == 0 })
	status.Held = nil
	return whyOf(status, func(c Cause) bool { return c.Addon == name })
}

func whyOf(status *Status, isMeant func(Cause) bool) *Why {
	w := &Why{Stacks: status.Stacks, Held: status.Held, Causes: []CauseMeant{}}
	for _, causes := range [][]Cause{status.Failed, status.Waiting, status.Progressing} {
		for _, cause := range causes {
			if isMeant(cause) {
				w.Causes = append(w.Causes, CauseMeant{cause, Meaning(cause.Reason)})
			}
		}
	}
	switch {
	case slices.ContainsFunc(status.Failed, isMeant):
		w.verdict = Failed
	case len(w.Causes)+len(w.Held) > 0:
		w.verdict = Waiting
	}
	return w
}
