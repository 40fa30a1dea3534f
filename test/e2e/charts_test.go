// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// chart is a small chart: the texts of its files by their paths. Chart.yaml gets
// apiVersion, name and version by itself.
type chart map[string]string

// writeChart puts a chart into the artifact root as a folder, and returns its
// path. It appears there at once, complete.
func (tn *tenant) writeChart(name, version string, c chart) string {
	tn.t.Helper()
	path := name + "-" + version
	staged := filepath.Join(tn.t.TempDir(), path)
	for file, text := range c.complete(name, version) {
		file = filepath.Join(staged, file)
		must.Succeed(tn.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Succeed(tn.t, os.WriteFile(file, []byte(text), 0o644))
	}
	must.Succeed(tn.t, os.Rename(staged, filepath.Join(tn.charts, path)))
	return path
}

// smallChart puts configMapChart into the artifact root, unless it is there, and returns its path.
func (tn *tenant) smallChart() string {
	tn.t.Helper()
	const name, version = "settings", "1.0.0"
	if _, err := os.Stat(filepath.Join(tn.charts, name+"-"+version)); err == nil {
		return name + "-" + version
	}
	return tn.writeChart(name, version, configMapChart)
}

// archive packs a chart as "helm package" does.
func (c chart) archive(name, version string) []byte {
	files := map[string]string{}
	for file, text := range c.complete(name, version) {
		files[name+"/"+file] = text
	}
	return tarball(files)
}

func (c chart) complete(name, version string) map[string]string {
	files := maps.Clone(c)
	files["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version) + c["Chart.yaml"]
	return files
}

// realChart puts a published chart into the artifact root and returns its
// path. It skips the test where there are none.
func (tn *tenant) realChart(file string) string {
	tn.t.Helper()
	must.Succeed(tn.t, os.WriteFile(filepath.Join(tn.charts, file), realdata.Read(tn.t, "charts", file), 0o644))
	return file
}

// configMapChart has one ConfigMap, named after the release, with the text of
// .Values.text.
var configMapChart = chart{
	"values.yaml":         "text: default\n",
	"templates/text.yaml": configMap("{{ .Release.Name }}", "{{ .Values.text | quote }}"),
}

// configMap is the manifest of a ConfigMap with one key, "text".
func configMap(name, text string) string {
	return strings.Join([]string{
		"apiVersion: v1", "kind: ConfigMap", "metadata: {name: " + quoted(name) + "}", "data: {text: " + text + "}", "",
	}, "\n")
}

// quoted is a YAML string that a template may be in.
func quoted(s string) string { return "'" + s + "'" }

// oddChart has what published charts have, and is easily changed on the way to a cluster. It has a last line without its
// end, nulls, text that looks like numbers, a list, what an export leaves, and rules that a controller fills in.
var oddChart = chart{
	"crds/widgets.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.odd.example.com, creationTimestamp: null}
spec:
  group: odd.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`,
	"templates/block.yaml": "{{- if true }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: block}\ndata:\n  kept: |+\n    a\n\n  text: |\n    the last line\n{{- end }}",
	"templates/roles.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: 'odd-sum'}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {odd: part}}]}
rules: []
---
# nothing but a comment
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: 'odd-part', labels: {odd: part}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
`,
	"templates/secrets.yaml": `apiVersion: v1
kind: Secret
metadata: {name: mixed, creationTimestamp: null, annotations: }
data: {a: YQ==, both: Yg==}
stringData: {text: "1e3", both: c, lines: "a\nb\n"}
`,
	"templates/list.yaml": `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: first, labels: }
  data: {"yes": "yes", octal: "0644", number: "1e3", float: "1.0", empty: "", long: {{ repeat 300 "x " | quote }}}
- apiVersion: odd.example.com/v1
  kind: Widget
  metadata: {name: one}
  spec: {whole: 3, big: 12345678901, part: 1.5, none: [], map: {}, text: "null", nested: [{a: 1}, {b: {c: true}}]}
`,
	"templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: odd, annotations: , labels: {app: odd}}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: odd}}
  template:
    metadata: {labels: {app: odd}, annotations: {sum: "{{ .Values | toJson | sha256sum }}"}}
    spec:
      nodeSelector:
      securityContext: {}
      containers:
      - name: web
        image: registry.example/web:1
        args: ["--a=1", "y"]
        env: [{name: A, value: "true"}, {name: B, value: "1e3"}]
        resources: {requests: {cpu: 0.5, memory: 134217728}, limits: {cpu: 1000m, memory: 0.5Gi}}
        ports: [{containerPort: 80, name: http}]
        volumeMounts: [{name: block, mountPath: /block}]
      volumes: [{name: block, configMap: {name: block, defaultMode: 0640}}]
---
apiVersion: v1
kind: Service
metadata: {name: odd}
spec: {selector: {app: odd}, ports: [{port: 80, targetPort: http, name: http}, {port: 53, protocol: UDP, name: dns}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: odd}
spec: {maxUnavailable: 50%, selector: {matchLabels: {app: odd}}}
`,
	"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: 'pre-install,post-install', helm.sh/hook-weight: '-5'}}\ndata: {key: value}\n",
}
