// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/realdata"
)

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

// TestLiveObjectsAsHelm installs published charts and a chart of corners on two clusters, on one of them with Helm. The
// objects are the same, but for what servers, controllers, Helm and Chandler set of their metadata.
func TestLiveObjectsAsHelm(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	servers := map[string]*server{}
	for _, name := range []string{"ours", "helms"} {
		s, err := startServer(context.Background(), controlplane.Options{Name: name + "-" + tn.namespace, Workers: true, Nodes: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop() })
		servers[name] = s
	}
	charts := []struct {
		name, namespace string
		archive         []byte
		path            string
		values          map[string]any
		helm            func(*action.Install)
	}{
		{name: "odd", namespace: tn.namespace, archive: oddChart.archive("odd", "1.0.0"), path: tn.writeChart("odd", "1.0.0", oddChart),
			helm: func(install *action.Install) { install.ServerSideApply = false }}, // which refuses nulls
		{name: "kube-state-metrics", namespace: tn.namespace, path: "kube-state-metrics-8.4.0.tgz"},
		{name: "ingress-nginx", namespace: tn.namespace, path: "ingress-nginx-4.15.1.tgz"},
		{name: "cilium", namespace: ciliumNamespace, path: "cilium-1.20.0.tgz", values: map[string]any{"hubble": map[string]any{"enabled": false}}}, // so it makes up no certificates
		{name: "metrics-server", namespace: tn.namespace, path: "metrics-server-3.13.1.tgz"},                                                        // with an API that doesn't answer
	}
	var addons []addonsv1.Addon
	for i, c := range charts {
		if c.archive == nil {
			charts[i].archive = realdata.Read(t, "charts", tn.realChart(c.path))
		}
		addon := tn.addon(c.name, c.path, inNamespace(c.namespace))
		if c.values != nil {
			withValues(c.values)(&addon)
		}
		addons = append(addons, addon)
	}
	tn.makeCluster("prod", servers["ours"], nil)
	tn.startManager()
	tn.makeStack("platform", nil, addons...)
	tn.awaitReady("platform", "all charts are to be installed")
	servers["helms"].createNamespace(t, tn.namespace)
	for _, c := range charts {
		more := []func(*action.Install){}
		if c.helm != nil {
			more = append(more, c.helm)
		}
		release := servers["helms"].helmInstalls(t, c.name, c.namespace, c.archive, c.values, more...)
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := record.ParseManifest(release.Manifest)
			g.Expect(err).NotTo(HaveOccurred())
			for _, hook := range release.Hooks {
				if hook.Name == "hook" { // others go once they have succeeded
					more, err := record.ParseManifest(hook.Manifest)
					g.Expect(err).NotTo(HaveOccurred())
					objects = append(objects, more...)
				}
			}
			for _, crd := range release.Chart.CRDObjects() {
				more, err := record.ParseManifest(string(crd.File.Data))
				g.Expect(err).NotTo(HaveOccurred())
				objects = append(objects, more...)
			}
			g.Expect(objects).NotTo(BeEmpty())
			for _, o := range objects {
				poll(t, patience, "it is to be as Helm's: "+objectName(o), func() error {
					ours, err := servers["ours"].contentOf(t, o, c.namespace)
					if err != nil {
						return fmt.Errorf("ours: %w", err)
					}
					helms, err := servers["helms"].contentOf(t, o, c.namespace)
					if err != nil {
						return fmt.Errorf("Helm's: %w", err)
					}
					if diff := cmp.Diff(helms, ours, cmpopts.EquateEmpty()); diff != "" {
						return fmt.Errorf("-helm +ours:\n%s", diff)
					}
					return nil
				})
			}
			t.Logf("%d objects are the same", len(objects))
		})
	}
}

// contentOf returns what a cluster has of an object, with those of its labels and annotations that its chart gives it.
func (s *server) contentOf(t *testing.T, o *unstructured.Unstructured, namespace string) (map[string]any, error) {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	key := client.ObjectKeyFromObject(o)
	namespaced, err := s.IsObjectNamespaced(live)
	if err != nil {
		return nil, err
	}
	if namespaced && key.Namespace == "" {
		key.Namespace = namespace
	}
	if err := s.Get(t.Context(), key, live); err != nil {
		return nil, err
	}
	content := wantedOf(live)
	content["labels"], content["annotations"] = ofChart(live.GetLabels()), ofChart(live.GetAnnotations())
	return content, nil
}

// ofChart returns the labels or annotations that no program sets.
func ofChart(all map[string]string) map[string]string {
	theirs := map[string]string{}
	for key, value := range all {
		switch prefix, _, _ := strings.Cut(key, "/"); {
		case prefix == "meta.helm.sh", prefix == "deployment.kubernetes.io", strings.HasSuffix(prefix, addonsv1.GroupVersion.Group):
		case key == "app.kubernetes.io/managed-by", key == "deprecated.daemonset.template.generation":
		default:
			theirs[key] = value
		}
	}
	return theirs
}
