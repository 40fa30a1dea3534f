// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// stackPage is a stack with its plan, its revisions and the members of its waves.
type stackPage struct {
	*summary.Stack
	Why     *summary.Status
	Spec    *addonsv1.AddonStack
	History *summary.History
	Waves   rollout.Decision
	Plan    *addonsv1.AddonPlan // nil if there is none
	// Problem is why the waves have no members here, and PlanProblem why no plan can be read.
	Problem, PlanProblem error
}

func stackView(q *request, p *page) error {
	namespace, name := q.PathValue("namespace"), q.PathValue("name")
	at := slices.IndexFunc(q.fleet.Stacks, func(s addonsv1.AddonStack) bool { return s.Namespace == namespace && s.Name == name })
	if at < 0 {
		return errNotFound
	}
	s := &q.fleet.Stacks[at]
	revisions, err := observed.Revisions(q.Context(), q.client, s)
	if err != nil {
		return err
	}
	is := &stackPage{Why: summary.StackStatus(q.fleet, s), Spec: s}
	is.Stack = &is.Why.Stacks[0]
	if is.History, err = summary.HistoryOf(s, revisions, q.fleet.Clusters); err != nil {
		return err
	}
	if s.Status.Rollout != nil {
		members, err := observed.Members(q.Context(), q.client, namespace)
		if is.Problem = err; err == nil {
			own := slices.DeleteFunc(slices.Clone(q.fleet.Clusters), func(ca addonsv1.ClusterAddon) bool { return ca.Namespace != namespace })
			is.Waves = summary.WavesOf(s, revisions, members, own, time.Now())
		}
	}
	is.Plan, is.PlanProblem = q.plan(s)
	p.View, p.Title, p.Command, p.Of = "stack", "AddonStack "+name, "kubectl chandler why stack/"+name+" -n "+namespace, is
	return nil
}

// plan returns the plan of a stack that was made last, nil if there is none.
func (q *request) plan(of *addonsv1.AddonStack) (newest *addonsv1.AddonPlan, _ error) {
	all := &addonsv1.AddonPlanList{}
	err := q.client.List(q.Context(), all, client.InNamespace(of.Namespace))
	for i := range all.Items {
		is := &all.Items[i]
		if is.Spec.StackName == of.Name && (newest == nil ||
			cmp.Or(newest.CreationTimestamp.Compare(is.CreationTimestamp.Time), cmp.Compare(newest.Name, is.Name)) < 0) {
			newest = is
		}
	}
	return newest, err
}
