// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// The objects of each component have its name as prefix. Its chart says which of them there are.
const (
	manifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Values.prefix }}-settings}
data: {text: {{ .Values.text | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Values.prefix }}-password}
stringData: {password: {{ randAlphaNum 20 }}}
{{- if .Values.extra }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Values.prefix }}-extra}
data: {text: {{ .Values.text | quote }}}
{{- end }}
`
	definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	thing = `apiVersion: GROUP/v1
kind: Thing
metadata: {name: {{ .Values.prefix }}-thing}
spec: {text: {{ .Values.text | quote }}}
`
)

// writeCharts writes a chart for each component into the artifact root. Two of them bring a kind of their own: by crds/,
// and by a template.
func writeCharts(t *testing.T, root, seed string) {
	t.Helper()
	for k := range components {
		name := componentName(k)
		files := map[string]string{
			"Chart.yaml":              "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			"values.yaml":             "prefix: " + name + "\ntext: default\nextra: false\n",
			"templates/manifest.yaml": manifest,
		}
		group := strings.NewReplacer("GROUP", name+"."+seed+".actions.test")
		switch k {
		case withCRDs:
			files["crds/things.yaml"] = group.Replace(definition)
		case withTemplate:
			files["templates/crd.yaml"] = group.Replace(definition)
		}
		if k == withCRDs || k == withTemplate {
			files["templates/thing.yaml"] = group.Replace(thing)
		}
		for file, text := range files {
			file = filepath.Join(root, name, file)
			must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must.Succeed(t, os.WriteFile(file, []byte(text), 0o644))
		}
	}
}
