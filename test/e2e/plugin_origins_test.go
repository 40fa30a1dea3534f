// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// shownOrigins is what get values --origins -o json writes.
type shownOrigins struct {
	Values []struct {
		Path    string
		Value   any
		From    []string
		Changed bool
	}
	Unread []struct{ From, Problem string }
}

// origins returns what the command shows, by path as "value < place or place".
func (p *plugin) origins(args ...string) (map[string]string, shownOrigins) {
	p.t.Helper()
	shown, by := shownOrigins{}, map[string]string{}
	p.Expect(json.Unmarshal([]byte(p.does(append([]string{"get", "values", "prod", "web", "--origins", "-o", "json"}, args...)...)), &shown)).To(Succeed())
	for _, is := range shown.Values {
		value, err := json.Marshal(is.Value)
		must.Succeed(p.t, err)
		by[is.Path] = string(value) + " < " + strings.Join(is.From, " or ")
		if is.Changed {
			by[is.Path] += ", changed"
		}
	}
	return by, shown
}

// TestOriginsSeenWithKubectl has values of each place, asks as people with and without the rights to read these, and after an edit.
func TestOriginsSeenWithKubectl(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	path := tn.writeChart("web", "1.0.0", chart{
		"values.yaml":         "text: none\nimage: {repository: r, tag: none, pull: none}\nlimits: {cpu: 1, memory: 2}\n",
		"templates/text.yaml": configMap("web", "{{ .Values.text }}"),
	})
	shop := tn.writeChart("shop", "1.0.0", chart{
		"values.yaml":         "replicas: 1\nimage: {repository: registry.example/shop, tag: none, pullPolicy: none}\nresources: {cpu: 1, memory: 2}\n",
		"templates/text.yaml": configMap("shop", "{{ quote .Values.image.tag }}"),
	})
	tn.create(tn.secret("shop-passwords", map[string]string{"values.yaml": "password: correct-horse-battery\n"}))
	tn.create(tn.secret("values", map[string]string{"values.yaml": "text: overridden\npassword: correct-horse-battery\npin: 123456789012\nport: 8080\n"}))
	tn.create(&corev1.ConfigMap{ObjectMeta: tn.named("prod-cloud"), Data: map[string]string{"cloud": "image: {pull: Always}\nzones: [1, 2]\n", "values.yaml": "image: {pullPolicy: Always}\n"}})
	installInfraClusterCRD(t)
	tn.create(tn.infraCluster("prod", "eu-1"))
	tn.makeCluster("prod", workloadServer(t, 0), labels("env=prod"), withInfraCluster("prod"))
	tn.startManager()
	tn.install(tn.addon("web", path, withValues(map[string]any{"text": "one", "a.b": map[string]any{"c": 1}}), withTemplate("image:\n  tag: {{ .Cluster.metadata.name }}\nregion: {{ .InfraCluster.spec.region }}\n"), withValuesFrom(
		addonsv1.ValuesReference{Kind: "Secret", Name: "values"},
		addonsv1.ValuesReference{Kind: "ConfigMap", Name: "{{ .Cluster.metadata.name }}-cloud", Key: "cloud"},
	)), tn.addon("shop", shop, withValues(map[string]any{"replicas": 3}), withTemplate("image: {tag: \"1.4\"}\n"), withValuesFrom(
		addonsv1.ValuesReference{Kind: "Secret", Name: "shop-passwords"}, addonsv1.ValuesReference{Kind: "ConfigMap", Name: "prod-cloud"},
	)))
	all := tn.newPlugin(append(mayAll, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{infraGroup}, Resources: []string{"*"}, Verbs: []string{"get"}})...)
	const chart, secret, cloud = "chart web 1.0.0", "Secret values, key values.yaml", "ConfigMap prod-cloud, key cloud"
	const written, template = "AddonStack platform, addons[web].values", "AddonStack platform, addons[web].valuesTemplate"
	want := map[string]string{
		`["a.b"]`: `{"c":1} < ` + written, "image.pull": `"Always" < ` + cloud, "image.repository": `"r" < ` + chart, "image.tag": `"prod" < ` + template,
		"limits": `{"cpu":1,"memory":2} < ` + chart, "password": `"[hidden]" < ` + secret, "pin": `"[hidden]" < ` + secret, "port": `8080 < ` + secret,
		"region": `"eu-1" < ` + template,
		"text":   `"one" < ` + written, "zones": `[1,2] < ` + cloud,
	}
	is, _ := all.origins()
	tn.Expect(is).To(Equal(want))
	page := all.does("get", "values", "prod", "web", "--origins")
	tn.Expect(page).To(MatchRegexp(`image\.tag +"prod" +` + strings.ReplaceAll(strings.ReplaceAll(template, "[", `\[`), "]", `\]`)))
	sample := docs.Sample(t, world.root, "docs/kubectl-chandler.md: kubectl chandler get values prod shop --origins")
	sample.Compare(t, all.does(sample.Programs()[0][2:]...))
	tn.Expect(page).NotTo(Or(ContainSubstring("correct-horse"), ContainSubstring("123456789012")))
	_, code := all.run("get", "values", "prod", "web", "-o", "table")
	tn.Expect(code).To(Equal(3), "no such output")

	kubeconfig := &corev1.Secret{}
	must.Succeed(t, world.hub.Get(t.Context(), client.ObjectKey{Namespace: tn.namespace, Name: "prod-kubeconfig"}, kubeconfig))
	file := filepath.Join(t.TempDir(), "workload")
	must.Succeed(t, os.WriteFile(file, kubeconfig.Data["value"], 0o600))
	few, shown := tn.newPluginAs("few").origins("--workload-kubeconfig", file)
	places := strings.Join([]string{secret, "ConfigMap {{ .Cluster.metadata.name }}-cloud, key cloud", template}, " or ")
	maps.DeleteFunc(want, func(path, _ string) bool { return path != "image.repository" && path != "limits" })
	want["text"], want[`["a.b"]`] = `"one" < `+written+" or "+template, `{"c":1} < `+written+" or "+template
	for path, value := range map[string]string{"image.pull": `"Always"`, "image.tag": `"prod"`, "password": `"[hidden]"`, "pin": `"[hidden]"`, "port": "8080", "region": `"eu-1"`, "zones": "[1,2]"} {
		want[path] = value + " < " + places
	}
	tn.Expect(few).To(Equal(want), "who may not read a place is told that it may be the one")
	tn.Expect(shown.Unread).To(HaveLen(3))
	tn.Expect(slices.ContainsFunc(shown.Unread, func(is struct{ From, Problem string }) bool {
		return is.From == secret && strings.Contains(is.Problem, "forbidden")
	})).To(BeTrue(), "%+v", shown.Unread)

	tn.pauseCluster("prod", true)
	change(tn, &corev1.ConfigMap{ObjectMeta: tn.named("prod-cloud")}, func(c *corev1.ConfigMap) { c.Data["cloud"] = "image: {pull: Never}\n" })
	is, _ = all.origins()
	tn.Expect(is).To(HaveKeyWithValue("image.pull", `"Always" < `+cloud+", changed"))
	tn.Expect(is).To(HaveKeyWithValue("zones", `[1,2] < , changed`))
}
