// SPDX-License-Identifier: Apache-2.0

package e2e

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
