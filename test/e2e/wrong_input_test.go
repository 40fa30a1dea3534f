// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

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
	endless := tn.writeChart("endless", "1.0.0", chart{
		"templates/text.yaml": configMap("endless", "\"{{ range until 1000000000 }}{{ if eq . -1 }}x{{ end }}{{ end }}\""),
	})
	notYAML := tn.writeChart("no-yaml", "1.0.0", chart{"templates/text.yaml": "a: b: c"})

	cases := map[string]struct {
		addon  addonsv1.Addon
		phase  addonsv1.AddonPhase
		reason string // one of these, with | between
		says   []string
	}{
		"missing-chart":      {addon: tn.addon("", "nowhere-1.0.0"), phase: addonsv1.AddonPending, reason: "ArtifactNotFound", says: []string{"chart.path", "nowhere-1.0.0"}},
		"no-archive":         {addon: tn.addon("", "text.tgz"), phase: addonsv1.AddonFailed, reason: "ArtifactInvalid", says: []string{"chart.path", "text.tgz"}},
		"no-yaml":            {addon: tn.addon("", notYAML), phase: addonsv1.AddonFailed, reason: "ManifestInvalid", says: []string{"addons[no-yaml].chart: no-yaml/templates/text.yaml"}},
		"endless-chart":      {addon: tn.addon("", endless), phase: addonsv1.AddonFailed, reason: "RenderTimeout|OutOfMemory", says: nil},
		"broken-template":    {addon: tn.addon("", good, withTemplate("text: {{ index (list) 3 }}")), phase: addonsv1.AddonFailed, reason: "ValuesTemplateFailed", says: []string{"addons[broken-template].valuesTemplate"}},
		"template-no-map":    {addon: tn.addon("", good, withTemplate("- a list")), phase: addonsv1.AddonFailed, reason: "ValuesInvalid", says: []string{"addons[template-no-map].valuesTemplate"}},
		"no-infra":           {addon: tn.addon("", good, withTemplate("text: '{{ .InfraCluster.spec.x }}'")), phase: addonsv1.AddonFailed, reason: "ValuesTemplateFailed", says: []string{"InfraCluster"}},
		"missing-values":     {addon: tn.addon("", good, valuesFromSecrets("none")), phase: addonsv1.AddonPending, reason: "ValuesNotFound", says: []string{"addons[missing-values].valuesFrom[0]: Secret", "none doesn't exist; create it, or set optional: true"}},
		"name-missing-field": {addon: tn.addon("", good, valuesFromSecrets("{{ .Cluster.metadata.labels.nowhere }}-config")), phase: addonsv1.AddonFailed, reason: "ValuesTemplateFailed", says: []string{"addons[name-missing-field].valuesFrom[0].name", "nowhere"}},
		"name-of-nothing":    {addon: tn.addon("", good, valuesFromSecrets("{{ .Cluster.metadata.name }}_config")), phase: addonsv1.AddonFailed, reason: "ValuesInvalid", says: []string{"addons[name-of-nothing].valuesFrom[0].name", "prod_config", "lower case"}},
		"no-namespace": {addon: tn.addon("", good, inNamespace(tn.namespace+"-none"), func(a *addonsv1.Addon) {
			a.CreateNamespace = new(bool)
		}), phase: addonsv1.AddonFailed, says: []string{tn.namespace + "-none", "createNamespace"}},
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
		tn.run(name, func(_ *testing.T, tn *tenant) {
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
