// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestMonitoring adds the component to overlays: Prometheus finds the manager's metrics.
func TestMonitoring(t *testing.T) {
	for overlay, namespace := range map[string]string{allInOne: "chandler-system", "instances/red": "chandler-red"} {
		t.Run(filepath.Base(overlay), func(t *testing.T) {
			g := NewWithT(t)
			dir := withComponent(t, overlay, "monitoring")
			file := filepath.Join(dir, "kustomization.yaml")
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(file, append(text, []byte("namespace: "+namespace+"\n")...), 0o600)).To(Succeed())
			objects := build(t, dir)
			manager := one[appsv1.Deployment](t, objects, "Deployment")
			var service corev1.Service
			for _, s := range find[corev1.Service](t, objects, "Service") {
				if s.Name == "chandler-metrics" {
					service = s
				}
			}
			pod := manager.Spec.Template
			g.Expect(service.Namespace).To(Equal(manager.Namespace))
			g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))).To(BeTrue(), "%v, %v", service.Spec.Selector, pod.Labels)
			g.Expect(pod.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", service.Spec.Ports[0].TargetPort.StrVal)))
			monitor := one[unstructured.Unstructured](t, objects, "ServiceMonitor")
			g.Expect(monitor.GetNamespace()).To(Equal(manager.Namespace))
			wanted, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(labels.SelectorFromSet(wanted).Matches(labels.Set(service.Labels))).To(BeTrue())
		})
	}
}

// TestKubeStateMetricsMayFindKinds compares the role with what kube-state-metrics reads: it finds each kind by its definition.
func TestKubeStateMetricsMayFindKinds(t *testing.T) {
	role := rbacv1.ClusterRole{}
	for _, r := range find[rbacv1.ClusterRole](t, build(t, withComponent(t, allInOne, "monitoring")), "ClusterRole") {
		if r.Name == "chandler-kube-state-metrics" {
			role = r
		}
	}
	NewWithT(t).Expect(role.Rules).To(ConsistOf(
		rbacv1.PolicyRule{APIGroups: []string{"addons.cluster.x-k8s.io"}, Resources: []string{"clusteraddons"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	))
}

// TestMonitoredMetricsExist compares rules and dashboard with the metrics that there are.
func TestMonitoredMetricsExist(t *testing.T) {
	page, err := docs.Read(root, "docs/reference/metrics.md")
	must.Succeed(t, err)
	documented := map[string]bool{}
	for _, row := range page.Rows("metric") {
		documented[row.Code(0)[0]] = true
	}
	for _, name := range []string{"rules.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join("../../config/monitoring", name))
		must.Succeed(t, err)
		used := regexp.MustCompile(`\bchandler_[a-z_]+`).FindAllString(string(data), -1)
		for _, metric := range used {
			if !documented[strings.TrimSuffix(metric, "_bucket")] {
				t.Errorf("%s has %s, which docs/reference/metrics.md hasn't", name, metric)
			}
		}
		if len(used) < 5 {
			t.Errorf("%s has %d metrics only", name, len(used))
		}
	}
}

// TestAlertsSayWhatToDo wants of each alert all that a person on call needs.
func TestAlertsSayWhatToDo(t *testing.T) {
	rules := one[unstructured.Unstructured](t, build(t, withComponent(t, allInOne, "monitoring")), "PrometheusRule")
	groups, _, err := unstructured.NestedSlice(rules.Object, "spec", "groups")
	must.Succeed(t, err)
	for _, rule := range groups[0].(map[string]any)["rules"].([]any) {
		annotations, _, err := unstructured.NestedStringMap(rule.(map[string]any), "annotations")
		must.Succeed(t, err)
		for _, name := range []string{"summary", "description", "runbook_url", "action"} {
			if annotations[name] == "" {
				t.Errorf("%v has no %s", rule.(map[string]any)["alert"], name)
			}
		}
	}
}

// TestPanelsSayWhatTheyShow wants of each panel of the dashboard a description, and of those with numbers a unit.
func TestPanelsSayWhatTheyShow(t *testing.T) {
	data, err := os.ReadFile("../../config/monitoring/dashboard.json")
	must.Succeed(t, err)
	var dashboard struct {
		Panels []struct {
			Title, Type, Description string
			FieldConfig              struct {
				Defaults struct{ Unit string }
			}
		}
	}
	must.Succeed(t, json.Unmarshal(data, &dashboard))
	for _, panel := range dashboard.Panels {
		if panel.Description == "" || panel.Type != "table" && panel.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %q has description %q and unit %q", panel.Title, panel.Description, panel.FieldConfig.Defaults.Unit)
		}
	}
}
