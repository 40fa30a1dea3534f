// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// inputCharts are paths of charts.
type inputCharts struct {
	settings, web, strict, monitor, needsDomain, umbrella, labelled, failingHook, workingHook string
}

func (i *input) writeInputCharts() inputCharts {
	i.t.Helper()
	hooked := func(version string, annotations ...string) string {
		return i.writeChart("hooked", version, chart{"templates/text.yaml": configMap("hooked", "x"), "templates/hook.yaml": hookJob("pre-install", annotations...)})
	}
	return inputCharts{
		settings: i.writeChart("settings", "1.0.0", configMapChart),
		web:      i.writeChart("web", "1.0.0", webChart),
		strict: i.writeChart("strict", "1.0.0", chart{
			"values.schema.json":  `{"type":"object","properties":{"replicas":{"type":"integer"}},"additionalProperties":false}`,
			"templates/text.yaml": configMap("{{ .Release.Name }}", "{{ .Values.replicas | quote }}"),
		}),
		monitor: i.writeChart("monitor", "1.0.0", chart{
			"values.yaml":            "monitor: true\n",
			"templates/text.yaml":    configMap("{{ .Release.Name }}", "x"),
			"templates/monitor.yaml": "{{ if .Values.monitor }}\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: shop}\n{{ end }}",
		}),
		needsDomain: i.writeChart("needs-domain", "1.0.0", chart{
			"templates/text.yaml": configMap("{{ .Release.Name }}", "{{ required \"set domain, as in example.org\" .Values.domain }}"),
		}),
		umbrella: i.writeChart("umbrella", "1.0.0", chart{
			"Chart.yaml":          "dependencies: [{name: database, version: 1.x, repository: 'https://charts.invalid'}]\n",
			"templates/text.yaml": configMap("{{ .Release.Name }}", "x"),
		}),
		labelled: i.writeChart("labelled", "1.0.0", chart{
			"values.yaml": "public: true\nweb: true\n",
			"templates/text.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
				"metadata: {name: '{{ .Release.Name }}', labels: {public: {{ .Values.public }}, web: {{ .Values.web }}}}\ndata: {text: x}\n",
		}),
		failingHook: hooked("1.0.0", controlplane.PodFate+": "+controlplane.PodFails),
		workingHook: hooked("1.0.1"),
	}
}

// runs makes the stack, and returns once it is Ready everywhere.
func (i *input) runs(addons ...addonsv1.Addon) {
	i.t.Helper()
	i.makeStack(i.name, everywhere, addons...)
	i.awaitReady(i.name, "there is nothing wrong yet")
}

// made returns a function that makes the stack.
func (i *input) made(addons ...addonsv1.Addon) func() {
	return func() { i.makeStack(i.name, everywhere, addons...) }
}

// changed returns a function that changes the stack's add-on.
func (i *input) changed(mutate func(*addonsv1.Addon)) func() {
	return func() { i.changeStack(i.name, func(spec *addonsv1.AddonStackSpec) { mutate(&spec.Addons[0]) }) }
}

// createOn makes an object on a server.
func (i *input) createOn(s *server, obj client.Object) {
	i.t.Helper()
	must.Succeed(i.t, s.Create(i.t.Context(), obj))
}

// everyServer calls do with the servers of the Clusters of everywhere.
func (i *input) everyServer(do func(*server)) {
	for number := range inputClusters {
		do(workloadServer(i.t, number))
	}
}

// webServer starts a server of web pages, and returns its host and port. At /charts it is a Helm repository, too.
func (i *input) webServer() string {
	archive := configMapChart.archive("settings", "1.0.0")
	return serveFiles(i.t, map[string][]byte{
		"/charts/index.yaml":   []byte("apiVersion: v1\nentries:\n  settings:\n  - {apiVersion: v2, name: settings, version: 1.0.0, urls: [settings.tgz], digest: '" + digestOf(archive)[len("sha256:"):] + "'}\n"),
		"/charts/settings.tgz": archive,
		"/":                    []byte("<html>a web page</html>"),
	})
}

// inputs are all of them.
func inputs(charts inputCharts) map[string]func(*input) {
	all := map[string]func(*input){}
	for _, some := range []func(inputCharts) map[string]func(*input){valueInputs, sourceInputs, selectionInputs, objectInputs, clusterInputs} {
		maps.Copy(all, some(charts))
	}
	return all
}
