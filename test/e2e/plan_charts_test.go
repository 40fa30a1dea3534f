// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestPlansOfRealCharts plans edits of a stack of published charts, and makes each one: what is written to the cluster, object by
// object, is what the plan said.
func TestPlansOfRealCharts(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 0)
	cilium, upgraded := tn.realChart("cilium-1.19.5.tgz"), tn.realChart("cilium-1.19.6.tgz")
	metrics, state, ingress := tn.realChart("metrics-server-3.13.1.tgz"), tn.realChart("kube-state-metrics-8.4.0.tgz"), tn.realChart("ingress-nginx-4.15.1.tgz")
	reported := func(a *addonsv1.Addon) { a.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport} }
	ignored := func(a *addonsv1.Addon) {
		a.Drift = &addonsv1.Drift{Ignore: []addonsv1.DriftIgnoreRule{{Kind: "Deployment", Paths: []string{"/spec/replicas"}}}}
	}
	tn.install(tn.addon("metrics-server", metrics, reported), tn.addon("ingress-nginx", ingress, ignored))
	add := func(a addonsv1.Addon) func(*addonsv1.AddonStackSpec) {
		return func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, a) }
	}
	edit := func(name string, by func(*addonsv1.Addon)) func(*addonsv1.AddonStackSpec) {
		return func(spec *addonsv1.AddonStackSpec) {
			by(&spec.Addons[slices.IndexFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Name == name })])
		}
	}
	scale := func(name string) {
		_, err := s.clientset.AppsV1().Deployments(tn.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "somebody"})
		must.Succeed(t, err)
	}
	for _, step := range []struct {
		name string
		by   func()
		edit func(*addonsv1.AddonStackSpec)
		want map[addonsv1.PlanAction]int
	}{
		{name: "an installation", edit: add(tn.addon("cilium", cilium, inNamespace(ciliumNamespace)))},
		{name: "an upgrade", edit: edit("cilium", func(a *addonsv1.Addon) { a.Chart.Path = upgraded }), want: map[addonsv1.PlanAction]int{"Change": 4}},
		{
			name: "an adoption",
			by: func() {
				account := &corev1.ServiceAccount{ObjectMeta: tn.named("kube-state-metrics")}
				_, err := s.clientset.CoreV1().ServiceAccounts(tn.namespace).Create(t.Context(), account, metav1.CreateOptions{})
				must.Succeed(t, err)
			},
			edit: add(tn.addon("kube-state-metrics", state, func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt })),
		},
		{
			name: "drift", by: func() { scale("metrics-server") },
			edit: edit("metrics-server", withValues(map[string]any{"replicas": 2})), want: map[addonsv1.PlanAction]int{"Change": 1},
		},
		{
			name: "drift that a rule leaves", by: func() { scale("ingress-nginx-controller") },
			edit: edit("ingress-nginx", withValues(map[string]any{"controller": map[string]any{"config": map[string]any{"use-gzip": "true"}}})),
		},
		{name: "a removal", edit: func(spec *addonsv1.AddonStackSpec) {
			spec.Addons = slices.DeleteFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Name == "metrics-server" })
		}},
	} {
		tn.run(step.name, func(t *testing.T, tn *tenant) {
			if step.by != nil {
				step.by()
			}
			tn.settle()
			begun, beginning := time.Now(), s.mark(t)
			p := tn.planOf(step.name, step.edit)
			asked := beginning.requests(t, tn.clusterUser("prod"))
			tn.Expect(writes(asked)).To(BeEmpty(), "a plan writes nothing")
			tn.Expect(p.Status.Groups).To(HaveLen(1), "%+v", p.Status)
			t.Logf("planned with %d requests in %s", len(asked), time.Since(begun).Round(time.Millisecond))
			for action, n := range step.want {
				tn.Expect(changesOf(p, action)).To(HaveLen(n), "%+v", p.Status.Groups)
			}

			beginning = s.mark(t)
			tn.changeStack("platform", step.edit)
			tn.awaitReady("platform", step.name)
			tn.settle()
			written := objectsWritten(beginning.requests(t, tn.clusterUser("prod")))
			maybe := slices.Concat(changesOf(p, "Keep"), changesOf(p, "NotChecked"), changesOf(p, "Refused"))
			written = slices.DeleteFunc(written, func(o string) bool { return slices.Contains(maybe, o) })
			said := slices.Concat(changesOf(p, "Create"), changesOf(p, "Change"), changesOf(p, "Adopt"), changesOf(p, "Recreate"), changesOf(p, "Delete"), changesOf(p, "Hook"))
			slices.Sort(said)
			tn.Expect(written).To(HaveExactElements(slices.Compact(said)))
		})
	}
}

// planOf plans an edit of the stack.
func (tn *tenant) planOf(name string, edit func(*addonsv1.AddonStackSpec)) *addonsv1.AddonPlan {
	tn.t.Helper()
	return tn.plans(strings.ReplaceAll(name, " ", "-"), addonsv1.AddonPlanSpec{Template: tn.edited(edit)})
}

// changesOf returns the objects of a plan with an action, as "resource namespace/name".
func changesOf(p *addonsv1.AddonPlan, action addonsv1.PlanAction) (all []string) {
	for _, g := range p.Status.Groups {
		for _, c := range g.Changes {
			if c.Action == action {
				resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(c.APIVersion, c.Kind))
				all = append(all, fmt.Sprintf("%s %s/%s", resource.Resource, c.Namespace, c.Name))
			}
		}
	}
	return all
}

// objectsWritten returns the objects that were written or deleted, but for release records.
func objectsWritten(events []auditEvent) (all []string) {
	for _, e := range events {
		isWrite := audit.Write(&e) && !strings.Contains(e.RequestURI, "dryRun=") && e.ObjectRef != nil
		if isWrite && !strings.HasPrefix(e.ObjectRef.Name, "sh.helm.release.") && e.ObjectRef.Resource != "events" && e.ObjectRef.Name != "" {
			namespace := e.ObjectRef.Namespace
			if e.ObjectRef.Resource == "namespaces" { // the log has a namespace's own name for it
				namespace = ""
			}
			all = append(all, fmt.Sprintf("%s %s/%s", e.ObjectRef.Resource, namespace, e.ObjectRef.Name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
