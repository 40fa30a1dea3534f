// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// podTemplate is a workload of a chart whose pods have these annotations. SUM(file) in them is the checksum of another template.
func podTemplate(kind, name, fields, annotations string) string {
	annotations = regexp.MustCompile(`SUM\(([^)]*)\)`).ReplaceAllString(annotations, `'{{ include (print $$.Template.BasePath "/$1") . | sha256sum }}'`)
	template := fmt.Sprintf(`template: {metadata: {labels: {app: %[1]s}, annotations: { %[2]s }}, spec: {RESTARTcontainers: [{name: a, image: example.org/a}]}}`, name, annotations)
	spec := fmt.Sprintf("selector: {matchLabels: {app: %s}}, %s%s", name, fields, strings.Replace(template, "RESTART", "", 1))
	version := "apps/v1"
	if kind == "CronJob" {
		version, spec = "batch/v1", fmt.Sprintf("schedule: '0 0 1 1 *', jobTemplate: {spec: {%s}}", strings.Replace(template, "RESTART", "restartPolicy: Never, ", 1))
	}
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, annotations: {}}\nspec: {%s}\n", version, kind, name, spec)
}

// keptPassword is what many charts do: they write the password in another form once it is there.
const keptPassword = `{{- $old := lookup "v1" "Secret" .Release.Namespace .Release.Name }}
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}"}
data:
  password: {{ if .Values.password }}{{ .Values.password | b64enc | quote }}{{ else if $old }}{{ index $old.data "password" }}{{ else }}{{ randAlphaNum 12 | b64enc | quote }}{{ end }}
`

// signed has a certificate whose authority is nowhere to be read.
const signed = `{{- $ca := genCA "authority" 365 }}{{ $made := genSignedCert "name" nil nil 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}"}
data: {ca.crt: "{{ $ca.Cert | b64enc }}", tls.crt: "{{ $made.Cert | b64enc }}", tls.key: "{{ $made.Key | b64enc }}"}
`

// likePublished are charts that do what makes published ones of their names special in a move.
var likePublished = map[string]chart{
	"redis": {"templates/secret.yaml": keptPassword, "templates/config.yaml": configMap("redis", "x"),
		"templates/master.yaml":   podTemplate("StatefulSet", "redis-master", "serviceName: redis, ", "checksum/secret: SUM(secret.yaml), checksum/config: SUM(config.yaml)"),
		"templates/replicas.yaml": podTemplate("StatefulSet", "redis-replicas", "replicas: 3, serviceName: redis, ", "checksum/secret: SUM(secret.yaml)")},
	"grafana":       {"templates/secret.yaml": keptPassword, "templates/pods.yaml": podTemplate("Deployment", "grafana", "", "checksum/secret: SUM(secret.yaml)")},
	"grafana-given": {"templates/secret.yaml": keptPassword, "templates/pods.yaml": podTemplate("Deployment", "grafana-given", "", "checksum/secret: SUM(secret.yaml)")},
	"keycloak": {"templates/secret.yaml": strings.Replace(strings.Replace(keptPassword, "| b64enc | quote", "| quote", 2), "\ndata:", "\n{{ if $old }}data{{ else }}stringData{{ end }}:", 1),
		"templates/pods.yaml": podTemplate("StatefulSet", "keycloak", "serviceName: keycloak, ", "checksum/secrets: SUM(secret.yaml), rollme: '{{ randAlphaNum 5 }}'")},
	"harbor": {"templates/secret.yaml": signed, "templates/core.yaml": podTemplate("Deployment", "harbor-core", "", "checksum/tls: SUM(secret.yaml)"),
		"templates/portal.yaml": podTemplate("Deployment", "harbor-portal", "", "")},
	"opentelemetry": {"templates/secret.yaml": signed, "templates/pods.yaml": podTemplate("Deployment", "opentelemetry", "", "")},
	"vault":         {"templates/pods.yaml": podTemplate("StatefulSet", "vault", "updateStrategy: {type: OnDelete}, serviceName: vault, ", "upgraded: '{{ .Release.IsUpgrade }}'")},
	"nats":          {"templates/config.yaml": configMap("nats", "x"), "templates/pods.yaml": podTemplate("StatefulSet", "nats", "serviceName: nats, ", "checksum/config: SUM(config.yaml)")},
	"reloader": {"templates/pods.yaml": podTemplate("Deployment", "reloader", "",
		"policy: '{{ .Capabilities.APIVersions.Has \"policy/v1\" }}', revision: '{{ .Release.Revision }}'")},
	"sealed-secrets": {"templates/pods.yaml": podTemplate("Deployment", "sealed-secrets", "", "")},
	"external-dns":   {"templates/pods.yaml": podTemplate("Deployment", "external-dns", "", "{{ if .Release.IsUpgrade }}more: x{{ end }}")},
	"descheduler":    {"templates/config.yaml": configMap("descheduler", "'{{ .Release.Revision }}'"), "templates/pods.yaml": podTemplate("CronJob", "descheduler", "", "checksum/config: SUM(config.yaml)")},
}

// TestSixteenReleasesMoveThereAndBack moves releases over, back, and over again: four of published charts, and others like such. No pod restarts
// that wasn't named before, and each object is the same.
func TestSixteenReleasesMoveThereAndBack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	var releases []previousRelease
	for name, c := range likePublished {
		releases = append(releases, previousRelease{chart: name, namespace: "small", archive: c.archive(name, "1.0.0"), name: func(string) string { return name },
			values: func(string) map[string]any {
				if name == "grafana-given" {
					return map[string]any{"password": "given"}
				}
				return nil
			}})
	}
	for _, c := range movedCharts {
		releases = append(releases, previousRelease{chart: c.name, namespace: c.namespace, archive: realdata.Read(t, "charts", c.file),
			name: func(string) string { return c.name }, values: func(string) map[string]any { return nil }})
	}
	m := newMoving(t, releases...)
	m.Expect(releases).To(HaveLen(16))
	m.joins("sixteen", m.userOn(ownServer(t, controlplane.Options{Name: "sixteen", Workers: true, Nodes: 2}), "sixteen").Kubeconfig)
	m.install(migration.Helm)
	m.startManager()
	p := m.newPlugin(mayMove...)
	args := []string{"migrate", "helm"}
	for _, r := range m.releases {
		args = append(args, "--repository", r.chart+"="+m.repository)
	}
	out := p.does(args...)
	for _, name := range []string{"harbor", "opentelemetry"} {
		m.Expect(out).To(MatchRegexp("# problem: release small/%s on cluster sixteen: GeneratedValuesLost", name))
	}
	m.Expect(strings.Count(out, "# problem")).To(Equal(2), out)

	there := append(args, "--generated-values", "renew")
	told := m.movesAsTold(p, there)
	m.Expect(told).To(ConsistOf("sixteen Deployment small/harbor-core"))
	m.Expect(m.movesAsTold(p, []string{"migrate", "helm", "--back"})).To(BeEmpty())
	m.movesAsTold(p, there)
}

// movesAsTold runs a command as a plan, which changes nothing, and then in earnest. It returns the workloads whose pods the plan
// said restart: no other ones do.
func (m *moving) movesAsTold(p *plugin, args []string) (told []string) {
	m.t.Helper()
	before, uids := m.workloads(), m.uids()
	out := p.does(args...)
	m.Expect(m.workloads()).To(Equal(before), "a plan changes nothing")
	for _, line := range regexp.MustCompile(`on cluster (\S+): the pods of (\S+ \S+) restart`).FindAllStringSubmatch(out, -1) {
		told = append(told, line[1]+" "+line[2])
	}
	m.t.Log(strings.Join(args[2:], " "), "tells:", told)
	p.does(append(args, "--apply")...)
	after := m.workloads()
	m.Expect(after).To(HaveLen(len(before)))
	for name, was := range before {
		if after[name] != was {
			m.Expect(told).To(ContainElement(name), "%s isn't told:\n%s\n%s", name, was, after[name])
		}
	}
	now := m.uids()
	for name, uid := range uids {
		m.Expect(now).To(HaveKeyWithValue(name, uid))
	}
	return told
}

// uids returns the UIDs of what releases have.
func (m *moving) uids() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	for cluster, config := range m.clusters {
		workload, err := client.New(config, client.Options{})
		must.Succeed(m.t, err)
		for kind, version := range map[string]string{
			"Secret": "v1", "ConfigMap": "v1", "Service": "v1", "ServiceAccount": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
			"CronJob": "batch/v1", "ClusterRole": "rbac.authorization.k8s.io/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
		} {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
			must.Succeed(m.t, workload.List(m.t.Context(), l))
			for _, o := range l.Items {
				if !strings.HasPrefix(o.GetName(), "sh.helm.release.v1.") {
					all[fmt.Sprintf("%s %s %s/%s", cluster, kind, o.GetNamespace(), o.GetName())] = string(o.GetUID())
				}
			}
		}
	}
	return all
}
