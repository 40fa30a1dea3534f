// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// change is a piece of the objects of a kind, or of any for "", and the piece of the template in its place. The overlay
// has to have it.
type change struct{ kind, pattern, text string }

const namespace = "{{ $.Release.Namespace }}"

// changesOf returns the changes of a mode, in their order.
func changesOf(m mode) []change {
	changes := []change{
		{"", `namespace: ` + m.namespace + `$`, "namespace: {{ $.Release.Namespace | quote }}"},
		{"Deployment", `image: .*`, "image: {{ with $.Values.image }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}{{ end }}"},
		{"Deployment", `^  replicas: (\d+)`, `  replicas: {{ if kindIs "invalid" $.Values.replicas }}$1{{ else }}{{ $.Values.replicas }}{{ end }}`},
		{"Deployment", `^        - --v=2\n`, "        - --v={{ $.Values.verbosity }}\n" +
			"        {{- range $.Values.extraArgs }}\n        - {{ . | quote }}\n        {{- end }}\n"},
		{"Deployment", `(name: GOMEMLIMIT\n +value:) (.*)\n`, `$1 {{ $.Values.goMemLimit | default "$2" }}` + "\n" +
			"        {{- with $.Values.env }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"},
		{"Deployment", `^        resources:\n((?:          .*\n)+)`, "        resources:\n          {{- with $.Values.resources }}\n" +
			"          {{- toYaml . | nindent 10 }}\n          {{- else }}\n$1          {{- end }}\n"},
		{"Deployment", `^      serviceAccountName: .*\n`, "$0      {{- with $.Values.podSpec }}\n      {{- toYaml . | nindent 6 }}\n      {{- end }}\n"},
	}
	if m.name != "shared" {
		changes = append(changes,
			change{"", `(app.kubernetes.io/instance): (chandler|` + anyName + `)$`, "$1: {{ $.Release.Name | quote }}"},
			change{"Deployment", `(name: NAMESPACES\n +value:) ""`, `$1 {{ join "," $.Values.namespaces | quote }}`},
			change{"Deployment", `(name: WATCH_FILTER\n +value:) ""`, "$1 {{ $.Values.watchFilter | quote }}"})
	}
	if m.name == "instance" {
		return append(changes, change{"", anyName, "{{ $.Release.Name }}"})
	}
	return slices.Concat(changes, []change{
		{"Certificate", `\.` + m.namespace + `\.`, "." + namespace + "."},
		{"Certificate", `issuerRef:\n((?:    .*\n)+)`, "issuerRef:\n    {{- with $.Values.certManager.issuerRef }}\n" +
			"    {{- toYaml . | nindent 4 }}\n    {{- else }}\n$1    {{- end }}\n"},
		{"", `(cert-manager.io/inject-ca-from): ` + m.namespace + `/`, "$1: " + namespace + "/"},
		{"CustomResourceDefinition", `^  annotations:\n`, "$0    {{- if $.Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n"},
	})
}
