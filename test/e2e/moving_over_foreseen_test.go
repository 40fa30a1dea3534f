// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// podsOf is a Deployment whose pods have the checksum of another template of the chart.
func podsOf(template string) string {
	return strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}, annotations: {checksum: '{{ include (print $.Template.BasePath "/TEMPLATE") . | sha256sum }}'}}
    spec: {containers: [{name: a, image: example.org/a}]}
`, "TEMPLATE", template)
}

// TestMigrationIsForeseen moves releases over as real charts are. One writes its password in another form once that is there. One has
// a setting that is another in an upgrade, one a certificate whose CA is nowhere to be read, and one an object that can't be changed.
// What becomes of them is told before anything is written, and a stack of a release's name has another one beside it.
func TestMigrationIsForeseen(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	charts := map[string]chart{
		"keeps": {"templates/pods.yaml": podsOf("secret.yaml"), "templates/secret.yaml": `{{- $old := lookup "v1" "Secret" .Release.Namespace .Release.Name }}
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}"}
data:
  password: {{ if $old }}{{ index $old.data "password" }}{{ else }}{{ randAlphaNum 12 | b64enc | quote }}{{ end }}
`},
		"restarts": {"templates/pods.yaml": podsOf("settings.yaml"), "templates/settings.yaml": configMap("{{ .Release.Name }}", "'{{ .Release.IsInstall }}'")},
		"loses":    {"templates/ca.yaml": configMap("{{ .Release.Name }}", `{{ (genCA "loses" 365).Cert | quote }}`)},
		"refused":  {"templates/fixed.yaml": configMap("{{ .Release.Name }}", "'{{ .Release.IsInstall }}'") + "immutable: true\n"},
	}
	var releases []previousRelease
	for name, c := range charts {
		releases = append(releases, previousRelease{chart: name, namespace: "default", archive: c.archive(name, "1.0.0"),
			name: func(string) string { return name }, values: func(string) map[string]any { return nil }})
	}
	m := newMoving(t, releases...)
	m.joins("foreseen-0", virtualcluster.NewAuthority(t).New(t, m.userOn(workloadServer(t, 1), "foreseen-0"), "foreseen-0").Kubeconfig)
	m.install(migration.Helm)
	m.makeStack("restarts", labels("env=none"), m.addon("restarts", "none"))
	before := m.workloads()
	p := m.newPlugin(mayMove...)
	migrate := func(args ...string) []string {
		all := append([]string{"migrate", "helm"}, args...)
		for name := range charts {
			all = append(all, "--repository", name+"="+m.repository)
		}
		return all
	}

	out := p.does(append(migrate("keeps"), "--timeout", "5s")...)
	m.Expect(out).To(And(ContainSubstring("# problem: what becomes of release default/keeps"), ContainSubstring("no provider instance"), ContainSubstring("kind: AddonStack")))
	looks := m.newPluginAs("looks", slices.DeleteFunc(slices.Clone(mayMove), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "addonplans" })...)
	m.Expect(looks.does(migrate("keeps")...)).To(And(ContainSubstring("# problem: what becomes of release default/keeps"), ContainSubstring("addonplans"), ContainSubstring("forbidden")))

	m.startManager()
	all := migrate("keeps", "restarts", "loses", "refused")
	out = p.does(all...)
	plans := &addonsv1.AddonPlanList{}
	m.Expect(world.hub.List(t.Context(), plans, client.InNamespace(m.namespace))).To(Succeed())
	m.Expect(plans.Items).To(BeEmpty(), "plans are deleted")
	var told []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "# note") || strings.HasPrefix(line, "# problem") {
			told = append(told, line)
		}
	}
	m.Expect(told).To(ConsistOf(
		And(ContainSubstring("problem: release default/loses on cluster foreseen-0"), ContainSubstring("GeneratedValuesLost"), ContainSubstring("data.text")),
		And(ContainSubstring("problem: release default/refused on cluster foreseen-0"), ContainSubstring("ConfigMap")),
		And(ContainSubstring("note: release default/restarts on cluster foreseen-0"), ContainSubstring("Deployment default/restarts")),
	), out)
	out, code := p.run(append(all, "--apply")...)
	m.Expect(code).To(Equal(3), out)
	stacks := &addonsv1.AddonStackList{}
	m.Expect(world.hub.List(t.Context(), stacks, client.InNamespace(m.namespace))).To(Succeed())
	m.Expect(stacks.Items).To(HaveLen(1), "nothing is done before the problems are solved")
	out, code = p.run(migrate("keeps", "--generated-values", "other")...)
	m.Expect(code).To(Equal(3), out)

	out = p.does(append(migrate("keeps", "restarts", "loses"), "--generated-values", "renew", "--apply")...)
	m.Expect(out).To(And(ContainSubstring("write AddonStack restarts-foreseen-0"), ContainSubstring("write AddonStack loses\n")))
	after := m.workloads()
	const kept, changed = "foreseen-0 Deployment default/keeps", "foreseen-0 Deployment default/restarts"
	m.Expect(before).To(And(HaveKey(kept), HaveKey(changed)))
	m.Expect(after).To(HaveKeyWithValue(kept, before[kept]))
	m.Expect(after[changed]).NotTo(Equal(before[changed]))

	t.Log(p.does("migrate", "helm", "--back", "--apply"))
	m.Expect(m.workloads()).To(Equal(after))
	p.does(append(migrate("keeps", "restarts", "loses"), "--generated-values", "renew", "--apply")...)
	m.Expect(m.workloads()).To(Equal(after), "there and back and there again")
}
