// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Foresee has an AddonPlan made of each AddonStack that isn't there, by a function that waits for its end. It adds a problem for
// each release that Chandler would refuse, and a note for each workload whose pods restart. If plans aren't answered, that is a problem.
func (f *Found) Foresee(ctx context.Context, plans []*Plan, await func(context.Context, *addonsv1.AddonPlan) error) {
	for _, p := range plans {
		if p.isTaken || slices.ContainsFunc(p.Releases, func(r *Release) bool { return r.Problem != "" }) {
			continue
		}
		is := p.addonPlan()
		if err := await(ctx, is); err == nil {
			f.tell(p, &is.Status)
		} else if f.problem("what becomes of %s isn't known: %v", p.Releases[0], err); is.Status.Phase != addonsv1.PlanFailed {
			return // nor would it be of the rest
		}
	}
}

// addonPlan returns a plan of the AddonStack, whose Secrets and labels of Clusters aren't written yet: values are those that the
// releases have, and clusters have a name.
func (p *Plan) addonPlan() *addonsv1.AddonPlan {
	template, _ := json.Marshal(addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: []addonsv1.Addon{p.Releases[0].Addon}}) // of our own types
	return &addonsv1.AddonPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Stack.Namespace, GenerateName: p.Stack.Name + "-"},
		Spec: addonsv1.AddonPlanSpec{
			StackName: p.Stack.Name, Template: &apiextensionsv1.JSON{Raw: template}, RecordedValues: true,
			ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: clusterv1.ClusterNameLabel, Operator: metav1.LabelSelectorOpIn, Values: p.clusters},
			}},
		},
	}
}

// tell adds problems and notes on what becomes of the releases.
func (f *Found) tell(p *Plan, is *addonsv1.AddonPlanStatus) {
	if is.TruncatedGroups > 0 {
		f.problem("AddonStack %s: its plan has no room for all clusters. Name some with -l", p.Stack.Name)
	}
	for _, g := range is.Groups {
		r := *p.Releases[0]
		if r.Cluster = strings.Join(g.Examples, ", "); int(g.Clusters) > len(g.Examples) {
			r.Cluster += fmt.Sprintf(" and %d more", int(g.Clusters)-len(g.Examples))
		}
		for _, a := range g.Addons {
			if a.Reason == job.ReasonGeneratedValuesLost {
				a.Message += ", or with --generated-values renew"
			}
			if a.Reason != "" || a.Name == "" {
				f.problem("%s: %s: %s", &r, cmp.Or(a.Reason, string(a.State)), a.Message)
			}
		}
		for _, c := range g.Changes {
			switch object := (record.ObjectKey{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}); {
			case c.Action == plan.Refuse:
				f.problem("%s: %s: %s", &r, c.Reason, c.Message)
			case c.Action == plan.Unknown:
				f.note("%s: what becomes of %s isn't known: %s", &r, object, c.Message)
			case c.Restarts:
				f.note("%s: the pods of %s restart", &r, object)
			}
		}
	}
}
