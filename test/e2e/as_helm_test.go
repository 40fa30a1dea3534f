// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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

// TestLiveObjectsAsHelm installs published charts and a chart of corners on two clusters, on one of them with Helm. The
// objects are the same, but for what servers, controllers, Helm and Chandler set of their metadata.
func TestLiveObjectsAsHelm(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	servers := map[string]*server{}
	for _, name := range []string{"ours", "helms"} {
		s := ownServer(t, controlplane.Options{Name: name + "-" + tn.namespace, Workers: true, Nodes: 2})
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
	tn.makeCluster("prod", servers["ours"], labels("env=prod"))
	tn.startManager()
	tn.install(addons...)
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
