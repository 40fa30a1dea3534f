// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// mayPlan lets people make plans, and write stacks.
var mayPlan = append([]rbacv1.PolicyRule{
	{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"addonplans", "addonstacks"}, Verbs: []string{"create", "delete"}},
}, mayAll...)

// written writes the stack, as an edit would leave it, into a file.
func (r *rolling) written(edit func(*addonsv1.AddonStackSpec)) string {
	r.t.Helper()
	s := r.newStack("platform", nil)
	must.Succeed(r.t, world.hub.Get(r.t.Context(), client.ObjectKeyFromObject(s), s))
	edit(&s.Spec)
	is := &addonsv1.AddonStack{TypeMeta: metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "AddonStack"}, ObjectMeta: r.named("platform"), Spec: s.Spec}
	text, err := yaml.Marshal(is)
	must.Succeed(r.t, err)
	file := filepath.Join(r.t.TempDir(), "platform.yaml")
	must.Succeed(r.t, os.WriteFile(file, text, 0o600))
	return file
}

// plans makes a plan, and waits for its end.
func (tn *tenant) plans(name string, spec addonsv1.AddonPlanSpec) *addonsv1.AddonPlan {
	tn.t.Helper()
	spec.StackName = "platform"
	p := &addonsv1.AddonPlan{ObjectMeta: tn.named(name), Spec: spec}
	tn.create(p)
	return awaitPlan(tn.t, p)
}

// awaitPlan waits until a plan is finished.
func awaitPlan(t *testing.T, p *addonsv1.AddonPlan) *addonsv1.AddonPlan {
	t.Helper()
	return await(t, world.hub, p, patience, "the plan is finished", func(p *addonsv1.AddonPlan) error {
		if !p.IsFinished() {
			return fmt.Errorf("it is %s: %+v", p.Status.Phase, p.Status.Conditions)
		}
		return nil
	})
}

// TestPlanBeforeAnEdit plans an edit, by reads and dry runs alone, and then makes it: the revision has the name that the plan
// says, and each cluster gets what the plan says.
func TestPlanBeforeAnEdit(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "plan", 3)
	p := r.newPlugin(mayPlan...)
	first := r.latestRevision("platform")
	out, code := p.run("plan", "platform")
	r.Expect(code).To(Equal(0), out)
	out, code = p.run("plan", "-f", r.written(func(*addonsv1.AddonStackSpec) {}))
	r.Expect(code).To(Equal(0), out)
	r.Expect(out).To(ContainSubstring(first), "what isn't edited is the same revision")

	r.settle()
	hub, workload := world.hub.mark(t), workloadServer(t, 1).mark(t)
	edit := func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].ValuesTemplate = "text: of-{{ .Cluster.metadata.name }}\n"
	}
	out, code = p.run("plan", "-f", r.written(edit))
	r.Expect(code).To(Equal(2), out)
	r.Expect(out).To(And(ContainSubstring("3 clusters (plan-0, plan-1, plan-2)"), ContainSubstring("~ ConfigMap "), ContainSubstring(`.data.text: "one" -> "of-plan-0" (varies)`)))
	r.Expect(out).NotTo(ContainSubstring("-made"), "generated values stay")
	for name := range r.clients {
		r.Expect(writes(workload.requests(t, r.clusterUser(name)))).To(BeEmpty(), "nothing is written to %s", name)
	}
	r.Expect(described(hub.requests(t, r.user), func(e auditEvent) bool {
		return !registers(e) && e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" && e.ObjectRef != nil && e.ObjectRef.Resource != "addonplans" && e.ObjectRef.Resource != "events"
	})).To(BeEmpty(), "nothing but the status of plans is written")
	left := &addonsv1.AddonPlanList{}
	must.Succeed(t, world.hub.List(t.Context(), left, client.InNamespace(r.namespace)))
	r.Expect(left.Items).To(BeEmpty(), "plans are deleted")

	kept := r.plans("kept", addonsv1.AddonPlanSpec{Template: r.edited(edit)})
	r.changeStack("platform", edit)
	is := r.awaitReady("platform", "the edit is made")
	r.Expect(out).To(ContainSubstring("revision " + is.Status.LatestRevision))
	r.Expect(kept.Status.Revision).To(Equal(is.Status.LatestRevision))
	for name, c := range r.clients {
		made := &corev1.ConfigMap{}
		must.Succeed(t, c.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "settings"}, made))
		r.Expect(made.Data["text"]).To(Equal("of-" + name))
	}
	r.Expect(p.does("plan", "platform")).To(ContainSubstring("changes 0"))
	r.Expect(p.does("undo", "platform", "--dry-run")).To(ContainSubstring("changes 3"))

	out, code = p.run("plan", "-f", r.written(func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].ValuesTemplate = valuesFor("one", "env") }))
	r.Expect(code).To(Equal(1), out)
	r.Expect(out).To(And(ContainSubstring("refused: 3"), ContainSubstring("settings: refused")))
	out, code = p.run("plan", "-f", r.written(func(spec *addonsv1.AddonStackSpec) { spec.Addons = nil }))
	r.Expect(code).To(Equal(3), out)
	out, code = p.run("plan", "platform", "--revision", "platform-none")
	r.Expect(code).To(Equal(3), out)
	r.Expect(out).To(ContainSubstring(addonsv1.PlanRevisionNotFoundReason))
	out, code = p.run("plan", "-f", r.written(func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels("env=none") }))
	r.Expect(code).To(Equal(1), out)
	r.Expect(out).To(And(ContainSubstring("waits for confirmation"), ContainSubstring("settings: removed"), ContainSubstring("- ConfigMap ")))
}

// edited returns the spec of the stack, as an edit would leave it.
func (tn *tenant) edited(edit func(*addonsv1.AddonStackSpec)) *apiextensionsv1.JSON {
	tn.t.Helper()
	s := tn.newStack("platform", nil)
	must.Succeed(tn.t, world.hub.Get(tn.t.Context(), client.ObjectKeyFromObject(s), s))
	edit(&s.Spec)
	text, err := json.Marshal(s.Spec)
	must.Succeed(tn.t, err)
	return &apiextensionsv1.JSON{Raw: text}
}

// TestApprovalSeesThePlan has a wave that waits for approval name the newest plan of its revision, and the command show its counts.
func TestApprovalSeesThePlan(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "seen", 3)
	p := r.newPlugin(mayPlan...)
	edit := func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].ValuesTemplate = valuesFor("two", "none")
		size := intstr.FromInt32(1)
		spec.Rollout = &addonsv1.Rollout{MinReady: &metav1.Duration{}, Waves: []addonsv1.RolloutWave{{Name: "canary", Size: &size, Approval: addonsv1.RolloutApprovalRequired}}}
	}
	before := r.plans("before", addonsv1.AddonPlanSpec{Template: r.edited(edit)})
	r.Expect(before.Status.Waves).To(HaveLen(2))
	r.changeStack("platform", edit)
	s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 0, "the canary waits")
	r.Expect(s.Status.Rollout.Revision).To(Equal(before.Status.Revision))
	r.awaitStack("platform", "it names the plan", addonsv1.RolledOutCondition, metav1.ConditionFalse, "", "AddonPlan before: Of 3 clusters")
	second := r.plans("second", addonsv1.AddonPlanSpec{})
	r.Expect(second.Status.Waves).To(Equal(before.Status.Waves))
	r.awaitStack("platform", "it names the newest one", addonsv1.RolledOutCondition, metav1.ConditionFalse, "", "AddonPlan second: Of 3 clusters")
	r.Expect(p.does("rollout", "approve", "platform", "canary")).To(ContainSubstring("Plan second of "))
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "all have it")
	r.Expect(r.at(before.Status.Revision)).To(HaveLen(3))
	await(t, world.hub, second, patience, "it is of the present", func(p *addonsv1.AddonPlan) error {
		return isStale(p, addonsv1.PlanCurrentReason)
	})
	r.edit("three", "none", func(spec *addonsv1.AddonStackSpec) { spec.Rollout = nil })
	await(t, world.hub, second, patience, "it isn't any more", func(p *addonsv1.AddonPlan) error {
		return isStale(p, addonsv1.PlanTargetChangedReason)
	})
}

func isStale(p *addonsv1.AddonPlan, reason string) error {
	for _, c := range p.Status.Conditions {
		if c.Type == addonsv1.StaleCondition && c.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("conditions are %+v", p.Status.Conditions)
}

// TestPlansTellNoSecrets plans changes whose values come from Secrets, and of charts with Secrets.
func TestPlansTellNoSecrets(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r, ss := newRolling(t, "told", 1), sentinels{}
	r.create(r.secret("old", map[string]string{"values": "text: " + ss.plantPlain("values that were")}))
	r.create(r.secret("new", map[string]string{"values": "text: " + ss.plantPlain("values that come")}))
	path := r.writeChart("secretive", "1.0.0", chart{
		"templates/text.yaml":   configMap("{{ .Release.Name }}", "{{ .Values.text | quote }}"),
		"templates/secret.yaml": secretOf("{{ .Release.Name }}", "stringData: {password: {{ .Values.text | quote }}, other: {{ randAlphaNum 32 | quote }}}"),
	})
	from := func(secret string) func(*addonsv1.AddonStackSpec) {
		return func(spec *addonsv1.AddonStackSpec) {
			spec.Addons = []addonsv1.Addon{r.addon("secretive", path, func(a *addonsv1.Addon) {
				a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: secret, Key: "values"}}
			})}
			spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: []string{"settings"}}
		}
	}
	r.plans("install", addonsv1.AddonPlanSpec{Template: r.edited(from("old"))})
	r.changeStack("platform", from("old"))
	r.awaitReady("platform", "the first values are there")
	p := r.plans("change", addonsv1.AddonPlanSpec{Template: r.edited(from("new"))})
	text, err := json.Marshal(p.Status)
	must.Succeed(t, err)
	r.Expect(string(text)).To(And(ContainSubstring(".data.password"), ContainSubstring(`"changed":1`)))

	all, events := &addonsv1.AddonPlanList{}, &eventsv1.EventList{}
	must.Succeed(t, world.hub.List(t.Context(), all, client.InNamespace(r.namespace)))
	must.Succeed(t, world.hub.List(t.Context(), events, client.InNamespace(r.namespace)))
	log, err := os.ReadFile(r.manager.LogFile)
	must.Succeed(t, err)
	for place, content := range map[string]any{"plans": all, "events": events, "the log": string(log)} {
		text, err := json.Marshal(content)
		must.Succeed(t, err)
		r.Expect(ss.in(text)).To(BeEmpty(), place)
		r.Expect(strings.Contains(string(text), "plan")).To(BeTrue(), place)
	}
}

// TestPlansOfPausedStacks plans a paused stack as it is written: nothing of that is kept as a revision before the pause ends.
func TestPlansOfPausedStacks(t *testing.T) {
	t.Parallel()
	tn, _ := newProd(t, 0)
	tn.install(tn.small("one"))
	tn.pauseCluster("prod", true)
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Values = valuesOf(map[string]any{"text": "x"}) })
	ofCluster := tn.plans("paused-cluster", addonsv1.AddonPlanSpec{})
	tn.Expect(ofCluster.Status.Clusters).To(Equal(addonsv1.PlanClusters{Total: 1, Held: 1}), "%+v", ofCluster.Status)
	tn.Expect(ofCluster.Status.Groups[0].Addons).To(ConsistOf(HaveField("Reason", addonsv1.PausedReason)))
	tn.pauseCluster("prod", false)
	tn.awaitReady("platform", "the cluster goes on")
	tn.pauseStack("platform")
	tn.Expect(tn.plans("as-it-is", addonsv1.AddonPlanSpec{}).Status.Clusters).To(Equal(addonsv1.PlanClusters{Total: 1, Same: 1}))
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, tn.small("two")) })
	p := tn.plans("edited", addonsv1.AddonPlanSpec{})
	tn.Expect(p.Status.Clusters).To(Equal(addonsv1.PlanClusters{Total: 1, Held: 1}), "%+v", p.Status)
	tn.Expect(p.Status.Groups[0].Addons).To(ConsistOf(HaveField("Reason", reasons.StackPaused)))
	tn.Expect(changesOf(p, "Create")).To(Equal([]string{"configmaps " + tn.namespace + "/two"}))
	tn.resumeStack("platform")
	s := tn.awaitReady("platform", "the pause ended")
	tn.Expect(s.Status.LatestRevision).To(Equal(p.Status.Revision))
	await(t, world.hub, p, patience, "it is of the present", func(p *addonsv1.AddonPlan) error { return isStale(p, addonsv1.PlanCurrentReason) })
}
