// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestWrongAddons has one stack with many add-ons, each wrong in its own way,
// and a good one, which they must not hold up.
func TestWrongAddons(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	good := tn.writeChart("good", "1.0.0", configMapChart)
	tn.Expect(os.WriteFile(filepath.Join(tn.charts, "text.tgz"), []byte("this is no archive"), 0o600)).To(Succeed())
	strict := tn.writeChart("strict", "1.0.0", chart{
		"values.schema.json":  `{"type":"object","properties":{"replicas":{"type":"integer"}}}`,
		"templates/text.yaml": configMap("{{ .Release.Name }}", "x"),
	})
	endless := tn.writeChart("endless", "1.0.0", chart{
		"templates/text.yaml": configMap("endless", "\"{{ range until 1000000000 }}{{ if eq . -1 }}x{{ end }}{{ end }}\""),
	})
	broken := tn.writeChart("broken", "1.0.0", chart{"templates/text.yaml": "{{ .Values.a.b.c }}"})
	notYAML := tn.writeChart("no-yaml", "1.0.0", chart{"templates/text.yaml": "a: b: c"})
	unknownKind := tn.writeChart("unknown-kind", "1.0.0", chart{
		"templates/thing.yaml": "apiVersion: nowhere.chandler.test/v1\nkind: Nothing\nmetadata: {name: x}\n",
	})

	cases := map[string]struct {
		addon  addonsv1.Addon
		phase  addonsv1.AddonPhase
		reason string // one of these, with | between
		says   []string
	}{
		"missing-chart":      {addon: tn.addon("", "nowhere-1.0.0"), phase: addonsv1.AddonPending, reason: "ArtifactNotFound", says: []string{"chart.path", "nowhere-1.0.0"}},
		"no-archive":         {addon: tn.addon("", "text.tgz"), phase: addonsv1.AddonFailed, reason: "ArtifactInvalid", says: []string{"chart.path", "text.tgz"}},
		"broken-schema":      {addon: tn.addon("", strict, withValues(map[string]any{"replicas": "many"})), phase: addonsv1.AddonFailed, reason: "SchemaViolation", says: []string{"addons[broken-schema].values.replicas: got string, want"}},
		"broken-chart":       {addon: tn.addon("", broken), phase: addonsv1.AddonFailed, reason: "TemplateFailed", says: []string{"addons[broken-chart].chart: broken/templates/text.yaml"}},
		"no-yaml":            {addon: tn.addon("", notYAML), phase: addonsv1.AddonFailed, reason: "ManifestInvalid", says: []string{"addons[no-yaml].chart: no-yaml/templates/text.yaml"}},
		"endless-chart":      {addon: tn.addon("", endless), phase: addonsv1.AddonFailed, reason: "RenderTimeout|OutOfMemory", says: nil},
		"missing-field":      {addon: tn.addon("", good, withTemplate("text: {{ .Cluster.spec.nowhere }}")), phase: addonsv1.AddonFailed, reason: "TemplateFailed", says: []string{"addons[missing-field].valuesTemplate", "nowhere"}},
		"broken-template":    {addon: tn.addon("", good, withTemplate("text: {{ index (list) 3 }}")), phase: addonsv1.AddonFailed, reason: "TemplateFailed", says: []string{"addons[broken-template].valuesTemplate"}},
		"template-no-yaml":   {addon: tn.addon("", good, withTemplate("a: b\nlist: [{{ .Cluster.metadata.name }}")), phase: addonsv1.AddonFailed, reason: "ValuesInvalid", says: []string{"addons[template-no-yaml].valuesTemplate", `begins with "list:"`}},
		"template-no-map":    {addon: tn.addon("", good, withTemplate("- a list")), phase: addonsv1.AddonFailed, reason: "ValuesInvalid", says: []string{"addons[template-no-map].valuesTemplate"}},
		"no-infra":           {addon: tn.addon("", good, withTemplate("text: '{{ .InfraCluster.spec.x }}'")), phase: addonsv1.AddonFailed, reason: "TemplateFailed", says: []string{"InfraCluster"}},
		"missing-values":     {addon: tn.addon("", good, valuesFromSecrets("none")), phase: addonsv1.AddonPending, reason: "ValuesNotFound", says: []string{"addons[missing-values].valuesFrom[0]: Secret", "none doesn't exist; create it, or set optional: true"}},
		"name-missing-field": {addon: tn.addon("", good, valuesFromSecrets("{{ .Cluster.metadata.labels.nowhere }}-config")), phase: addonsv1.AddonFailed, reason: "TemplateFailed", says: []string{"addons[name-missing-field].valuesFrom[0].name", "nowhere"}},
		"name-of-nothing":    {addon: tn.addon("", good, valuesFromSecrets("{{ .Cluster.metadata.name }}_config")), phase: addonsv1.AddonFailed, reason: "ValuesInvalid", says: []string{"addons[name-of-nothing].valuesFrom[0].name", "prod_config", "lower case"}},
		"no-namespace": {addon: tn.addon("", good, inNamespace(tn.namespace+"-none"), func(a *addonsv1.Addon) {
			a.CreateNamespace = new(bool)
		}), phase: addonsv1.AddonFailed, says: []string{tn.namespace + "-none", "createNamespace"}},
		"unknown-kind": {addon: tn.addon("", unknownKind), phase: addonsv1.AddonFailed, says: []string{"Nothing", "nowhere.chandler.test"}},
	}
	tn.makeCluster("prod", s, nil)
	tn.startManager("--render-timeout=4s", "--render-workers=2")
	addons := []addonsv1.Addon{tn.addon("good", good)}
	for name, tc := range cases {
		tc.addon.Name = name
		addons = append(addons, tc.addon)
	}
	tn.makeStack("platform", nil, addons...)
	tn.awaitCluster("prod", "a good add-on isn't held up by wrong ones", installedAs("good", 1, "1.0.0"))
	for name, tc := range cases {
		tn.run(name, func(t *testing.T, tn *tenant) {
			ca := tn.awaitCluster("prod", "a mistake is to be told in the add-on's status", phase(name, tc.phase, "", ""))
			status := statusOf(ca, name)
			for _, part := range tc.says {
				tn.Expect(status.Message).To(ContainSubstring(part), "the message is to name what is wrong")
			}
			if tc.reason != "" {
				tn.Expect(strings.Split(tc.reason, "|")).To(ContainElement(status.Reason), "reasons are stable: alerts name them. Message: %s", status.Message)
			}
			tn.Expect(status.Reason).NotTo(BeEmpty())
		})
	}
	tn.run("what was missing is noticed when it comes", func(t *testing.T, tn *tenant) {
		tn.create(tn.secret("none", map[string]string{"values.yaml": "text: here\n"}))
		tn.writeChart("nowhere", "1.0.0", configMapChart)
		tn.awaitCluster("prod", "a Secret and a chart that appear are to be used, without a change of the stack",
			installedAs("missing-values", 1, "1.0.0"), installedAs("missing-chart", 1, "1.0.0"))
		s.createNamespace(t, tn.namespace+"-none")
		tn.awaitCluster("prod", "a namespace that appears in the workload cluster is to be used", installedAs("no-namespace", 1, "1.0.0"))
	})
}

// TestInvalidStack stores, without the webhook, what only the webhook refuses.
func TestInvalidStack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 0)
	path := tn.writeChart("good", "1.0.0", configMapChart)
	for name, tc := range map[string]struct {
		spoil  func(*addonsv1.AddonStackSpec)
		reason string
		says   string
	}{
		"selector": {
			spoil: func(spec *addonsv1.AddonStackSpec) {
				spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is", Values: []string{"prod"}}}}
			},
			reason: addonsv1.InvalidSelectorReason, says: "spec.clusterSelector",
		},
		"cycle": {
			spoil: func(spec *addonsv1.AddonStackSpec) {
				spec.Addons = []addonsv1.Addon{tn.addon("cycle", path, after("b")), tn.addon("b", path, after("cycle"))}
			},
			reason: addonsv1.DependencyCycleReason, says: "cycle -> b -> cycle",
		},
		"dependency": {
			spoil: func(spec *addonsv1.AddonStackSpec) {
				spec.Addons = []addonsv1.Addon{tn.addon("dependency", path, after("nobody"))}
			},
			reason: addonsv1.UnknownDependencyReason, says: "spec.addons[0].dependsOn[0]",
		},
	} {
		tn.run(name, func(t *testing.T, tn *tenant) {
			tn.makeStack(name, nil, tn.addon(name, path))
			tn.awaitReady(name, "the stack is sound at first")
			before := s.release(t, tn.namespace, name)
			tn.changeStack(name, tc.spoil)
			tn.awaitStack(name, "a mistake is to be told, with its field", addonsv1.ValidCondition, metav1.ConditionFalse, tc.reason, tc.says)
			tn.awaitStack(name, "Ready sums up Valid", addonsv1.ReadyCondition, metav1.ConditionFalse, tc.reason, tc.says)
			tn.settle()
			tn.Expect(s.release(t, tn.namespace, name)).To(Equal(before), "while a spec is invalid, clusters stay as they are")
		})
	}
}
