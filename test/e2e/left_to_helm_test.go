// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// defaultsChart can't be rendered without its default values, or has less objects without an error. It has a dependency whose
// defaults Helm records with its own.
var defaultsChart = chart{
	"Chart.yaml":                         "dependencies: [{name: part, version: 1.0.0, import-values: [exported]}]\n",
	"values.yaml":                        "image: {pull: {policy: Always}}\nextra: {enabled: true}\ntext: default\n",
	"templates/text.yaml":                configMap("{{ .Release.Name }}", "{{ .Values.image.pull.policy }}-{{ .Values.text }}-{{ .Values.exported.deep.er }}"),
	"templates/extra.yaml":               "{{ if .Values.extra }}{{ if .Values.extra.enabled }}\n" + configMap("{{ .Release.Name }}-extra", "x") + "{{ end }}{{ end }}",
	"charts/part/Chart.yaml":             "apiVersion: v2\nname: part\nversion: 1.0.0\n",
	"charts/part/values.yaml":            "only: {part: 1}\nexports: {exported: {exported: {deep: {er: sure}}}}\n",
	"charts/part/templates/subpart.yaml": configMap("{{ .Release.Name }}-part", "{{ .Values.only.part | quote }}"),
}

// helmUses are what people do with a release: by the name of the release, the arguments of helm after it.
var helmUses = map[string][]string{
	"plain": {"upgrade", "CHART"}, "reuse": {"upgrade", "CHART", "--reuse-values"}, "reset": {"upgrade", "CHART", "--reset-values"},
	"resetreuse": {"upgrade", "CHART", "--reset-then-reuse-values"}, "reuseset": {"upgrade", "CHART", "--reuse-values", "--set", "image.pull.policy=Never"},
	"rollback": {"rollback"},
}

// provideHelm returns the path of helm, which is built once for each set of pins.
func provideHelm(t *testing.T) string {
	t.Helper()
	pins := filepath.Join(world.root, "hack/tools/helm")
	path, err := gobuild.Cached("helm", []string{filepath.Join(pins, "go.mod"), filepath.Join(pins, "go.sum")}, func(path string) error {
		return gobuild.Build(context.Background(), pins, path, "helm.sh/helm/v4/cmd/helm")
	})
	must.Succeed(t, err)
	return path
}

// TestLeftToHelm moves releases of each previous owner over, upgrades them, and moves them back. Others are installed by
// Chandler, and left behind by their deletion policy. Then helm itself upgrades them with each of its flags for values, and
// goes back to an earlier revision.
func TestLeftToHelm(t *testing.T) {
	long.Test(t)
	t.Parallel()
	helm := provideHelm(t)
	for _, origin := range []migration.Origin{migration.Provider, migration.Flux, migration.Helm, ""} {
		t.Run(cmp.Or(string(origin), "orphan"), func(t *testing.T) {
			t.Parallel()
			m, kubeconfig := newDefaultsMoving(t, origin)
			m.changesAddons()
			if origin == "" {
				for name := range helmUses {
					m.changeStack(name, orphans)
				}
				m.awaitCluster(m.names()[0], "the policy arrives", func(ca *addonsv1.ClusterAddon) error {
					for _, s := range ca.Spec.Stacks {
						if s.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
							return fmt.Errorf("%+v", s)
						}
					}
					return nil
				})
				for name := range helmUses {
					m.remove(m.newStack(name, nil))
				}
				m.awaitCluster(m.names()[0], "the stacks leave", leftBehind)
			} else {
				m.moves(origin, true, 1000)
			}
			for name, use := range helmUses {
				m.useHelm(helm, kubeconfig, name, use)
			}
		})
	}
}

// newDefaultsMoving has a cluster with a release for each use of helm, which are Chandler's. Without an origin, Chandler
// installed them.
func newDefaultsMoving(t *testing.T, origin migration.Origin) (m *moving, kubeconfig string) {
	t.Helper()
	var releases []previousRelease
	for name := range helmUses {
		releases = append(releases, previousRelease{chart: name, namespace: "default", archive: defaultsChart.archive(name, "1.0.0"),
			name: func(string) string { return name }, template: "text: one\n", values: func(string) map[string]any { return map[string]any{"text": "one"} }})
	}
	m = newMoving(t, releases...)
	cluster := "left" + string(origin)
	config := virtualcluster.NewAuthority(t).New(t, m.userOn(workloadServer(t, 1), cluster), cluster).Kubeconfig
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(kubeconfig, config, 0o600))
	m.joins(cluster, config)
	if origin == "" {
		m.startManager()
		for _, r := range releases {
			m.makeStack(r.chart, labels("env=prod"), addonsv1.Addon{Name: r.chart, Namespace: r.namespace, Values: &apiextensionsv1.JSON{Raw: []byte(`{"text":"one"}`)},
				Chart: addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: m.repository, Chart: r.chart, PlainHTTP: new(true)}, Version: "1.0.0"}})
		}
		return m, kubeconfig
	}
	m.install(origin)
	m.startManager()
	m.moves(origin, false, 1000)
	return m, kubeconfig
}

// changesAddons has each release upgraded by Chandler.
func (m *moving) changesAddons() {
	m.t.Helper()
	for _, r := range m.releases {
		m.awaitReady(r.chart, "it is installed")
		m.changeStack(r.chart, func(spec *addonsv1.AddonStackSpec) {
			spec.Addons[0].ValuesTemplate = ""
			spec.Addons[0].ValuesTemplateMode = ""
			spec.Addons[0].Values = &apiextensionsv1.JSON{Raw: []byte(`{"text":"two"}`)}
		})
	}
	for _, r := range m.releases {
		m.awaitReady(r.chart, "it is upgraded")
	}
}

// useHelm does with a release what people do, and expects its ConfigMaps as Helm alone would leave them.
func (m *moving) useHelm(helm, kubeconfig, release string, use []string) {
	m.t.Helper()
	run := func(args ...string) string {
		m.t.Helper()
		cmd := exec.CommandContext(m.t.Context(), helm, append(args, "--kubeconfig", kubeconfig, "--namespace", "default")...)
		cmd.Env = []string{"HOME=" + m.t.TempDir()}
		out, err := cmd.CombinedOutput()
		m.Expect(err).NotTo(HaveOccurred(), "helm %v: %s", args, out)
		return string(out)
	}
	archive := filepath.Join(m.t.TempDir(), release+".tgz")
	must.Succeed(m.t, os.WriteFile(archive, defaultsChart.archive(release, "1.0.0"), 0o600))
	m.Expect(run("get", "values", release, "--all")).To(And(ContainSubstring("policy: Always"), ContainSubstring("text: two")))
	m.Expect(run("get", "metadata", release)).To(MatchRegexp(`CHART: +%s\nVERSION: 1.0.0`, release))
	before := m.textsOf(release)
	m.Expect(before).To(HaveLen(3))

	args := []string{use[0], release}
	for _, arg := range use[1:] {
		args = append(args, strings.ReplaceAll(arg, "CHART", archive))
	}
	run(args...)
	want := map[string]string{"reset": "Always-default-sure", "reuseset": "Never-two-sure", "rollback": "Always-one-sure"}[release]
	if want == "" {
		want = "Always-two-sure"
	}
	after := m.textsOf(release)
	m.Expect(after).To(HaveLen(3), "helm %v", use)
	for name, was := range before {
		m.Expect(after[name].UID).To(Equal(was.UID))
	}
	m.Expect(after[release].Data).To(HaveKeyWithValue("text", want), "helm %v", use)
	run("upgrade", release, archive, "--reuse-values")
	m.Expect(m.textsOf(release)[release].Data).To(HaveKeyWithValue("text", want))
	run("uninstall", release)
	m.Expect(m.textsOf(release)).To(BeEmpty())
}

// textsOf returns the ConfigMaps of a release by their names.
func (m *moving) textsOf(release string) map[string]corev1.ConfigMap {
	m.t.Helper()
	workload, err := client.New(m.clusters[m.names()[0]], client.Options{})
	must.Succeed(m.t, err)
	all := &corev1.ConfigMapList{}
	must.Succeed(m.t, workload.List(m.t.Context(), all, client.InNamespace("default")))
	texts := map[string]corev1.ConfigMap{}
	for _, o := range all.Items {
		if o.Name == release || strings.HasPrefix(o.Name, release+"-") {
			texts[o.Name] = o
		}
	}
	return texts
}
