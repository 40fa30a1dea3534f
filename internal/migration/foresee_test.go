// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestPlansAreAsked has Chandler plan releases whose Secrets and labels aren't written yet: the plan names the clusters, and has no values.
func TestPlansAreAsked(t *testing.T) {
	g := NewWithT(t)
	one, other := release("a", "web", map[string]any{"token": "sentinel-1"}), release("c", "web", map[string]any{"token": "sentinel-2"})
	for _, r := range []*migration.Release{one, other} {
		r.Addon.GeneratedValuesPolicy, r.Addon.AdoptRelease = addonsv1.GeneratedValuesPolicyRenew, &addonsv1.ReleaseReference{StorageNamespace: "flux-system"}
	}
	without := release("b", "incomplete", nil)
	without.Problem = "has no record"
	f := found(one, other, without)
	plans := f.Plans()
	var asked []*addonsv1.AddonPlan
	f.Foresee(t.Context(), plans, func(_ context.Context, is *addonsv1.AddonPlan) error {
		asked = append(asked, is)
		return nil
	})
	g.Expect(f.Problems).To(BeEmpty())
	g.Expect(asked).To(HaveLen(1))
	spec := asked[0].Spec
	selector, err := metav1.LabelSelectorAsSelector(spec.ClusterSelector)
	must.Succeed(t, err)
	g.Expect(selector.String()).To(Equal("cluster.x-k8s.io/cluster-name in (a,c)"))
	g.Expect(spec.StackName).To(Equal(plans[0].Stack.Name))
	g.Expect(spec.RecordedValues).To(BeTrue())
	template := &addonsv1.AddonStackSpec{}
	must.Succeed(t, json.Unmarshal(spec.Template.Raw, template))
	g.Expect(template.Addons).To(ConsistOf(one.Addon), "with values as they are recorded")
	g.Expect(template.ClusterSelector).To(Equal(&metav1.LabelSelector{}))
	g.Expect(string(spec.Template.Raw)).NotTo(ContainSubstring("sentinel"))
	g.Expect(migration.YAML(plans)).To(ContainSubstring("sentinel"), "they are written all the same")
}

// TestPlansAreTold has each answer of a plan become a problem, a note, or nothing.
func TestPlansAreTold(t *testing.T) {
	of := func(state addonsv1.PlanState, reason string) []addonsv1.PlanAddon {
		return []addonsv1.PlanAddon{{Namespace: "web", Name: "web", State: state, Reason: reason, Message: "so it is"}}
	}
	change := func(action addonsv1.PlanAction, restarts bool) []addonsv1.PlanChange {
		return []addonsv1.PlanChange{{Addon: "web", Kind: "Deployment", Namespace: "web", Name: "app", Action: action, Restarts: restarts, Reason: "Why"}}
	}
	for name, c := range map[string]struct {
		group           addonsv1.PlanGroup
		problems, notes []string // parts of each
	}{
		"nothing":                    {group: addonsv1.PlanGroup{Addons: of("Changed", ""), Changes: change("Adopt", false)}},
		"a restart":                  {group: addonsv1.PlanGroup{Addons: of("Changed", ""), Changes: change("Adopt", true)}, notes: []string{"Deployment web/app"}},
		"a refusal":                  {group: addonsv1.PlanGroup{Addons: of("Refused", ""), Changes: change("Refused", false)}, problems: []string{"Why"}},
		"an unknown object":          {group: addonsv1.PlanGroup{Addons: of("NotChecked", ""), Changes: change("NotChecked", false)}, notes: []string{"Deployment web/app"}},
		"lost values":                {group: addonsv1.PlanGroup{Addons: of("Refused", job.ReasonGeneratedValuesLost)}, problems: []string{"--generated-values renew"}},
		"a chart that can't be read": {group: addonsv1.PlanGroup{Addons: of("Held", "SourceUnavailable")}, problems: []string{"SourceUnavailable"}},
		"a silent cluster":           {group: addonsv1.PlanGroup{Addons: []addonsv1.PlanAddon{{State: "Unreachable", Message: "so it is"}}}, problems: []string{"Unreachable"}},
		"many clusters": {group: addonsv1.PlanGroup{Clusters: 7, Examples: []string{"a", "b"}, Addons: of("Changed", ""), Changes: change("Adopt", true)},
			notes: []string{"cluster a, b and 5 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := found(release("a", "web", nil), release("b", "web", nil)) // all of the selector
			f.Foresee(t.Context(), f.Plans(), func(_ context.Context, is *addonsv1.AddonPlan) error {
				is.Status = addonsv1.AddonPlanStatus{Phase: addonsv1.PlanDone, Groups: []addonsv1.PlanGroup{c.group}}
				return nil
			})
			expectParts(g, f.Problems, c.problems)
			expectParts(g, f.Notes, c.notes)
			for _, text := range append(f.Problems, f.Notes...) {
				g.Expect(text).To(HavePrefix("release web/web on cluster "))
			}
		})
	}
}

func expectParts(g *WithT, texts, parts []string) {
	g.Expect(texts).To(HaveLen(len(parts)))
	for i, part := range parts {
		g.Expect(texts[i]).To(ContainSubstring(part))
	}
}

// TestPlansWithoutAnswers have a problem each. Where it is that of one stack, the others are asked.
func TestPlansWithoutAnswers(t *testing.T) {
	for phase, asked := range map[addonsv1.PlanPhase]int{addonsv1.PlanFailed: 2, addonsv1.PlanPending: 1} {
		g := NewWithT(t)
		f, n := found(release("a", "web-1", nil), release("b", "web-2", nil)), 0
		f.Foresee(t.Context(), f.Plans(), func(_ context.Context, is *addonsv1.AddonPlan) error {
			n++
			is.Status.Phase = phase
			return errors.New("no answer")
		})
		g.Expect(n).To(Equal(asked), phase)
		g.Expect(f.Problems).To(HaveLen(asked), phase)
		g.Expect(f.Problems[0]).To(And(ContainSubstring("web-1"), ContainSubstring("no answer")))
	}
	g := NewWithT(t)
	f := found(release("a", "web", nil))
	f.Foresee(t.Context(), f.Plans(), func(_ context.Context, is *addonsv1.AddonPlan) error {
		is.Status = addonsv1.AddonPlanStatus{Phase: addonsv1.PlanDone, TruncatedGroups: 3}
		return nil
	})
	g.Expect(f.Problems).To(ConsistOf(ContainSubstring("AddonStack web")), "some clusters aren't in the plan")
}
