// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// providePromtool returns the path of promtool, which is built once for each set of pins.
func providePromtool(t *testing.T) string {
	t.Helper()
	pins := filepath.Join(world.root, "hack/tools/promtool")
	path, err := gobuild.Cached("promtool", []string{filepath.Join(pins, "go.mod"), filepath.Join(pins, "go.sum")}, func(path string) error {
		return gobuild.Build(context.Background(), pins, path, "-tags", "remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool")
	})
	must.Succeed(t, err)
	return path
}

// scrape adds, as samples of an hour, what a manager's metrics are now to what they were, by series; a series that is gone gets no sample. The
// labels are those that Prometheus gives the manager's pod, unless the series has them itself.
func scrape(t *testing.T, m *manager, job string, times int, series map[string][]string) {
	t.Helper()
	response, err := http.Get(m.Metrics)
	must.Succeed(t, err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	must.Succeed(t, err)
	for name, family := range families {
		if !strings.HasPrefix(name, "chandler_") || family.GetType().String() != "GAUGE" {
			continue
		}
		for _, metric := range family.Metric {
			labels := map[string]string{"job": job, "namespace": job}
			for _, label := range metric.Label {
				labels[label.GetName()] = label.GetValue()
			}
			var pairs []string
			for _, label := range slices.Sorted(maps.Keys(labels)) {
				pairs = append(pairs, fmt.Sprintf("%s=%q", label, labels[label]))
			}
			key := name + "{" + strings.Join(pairs, ",") + "}"
			for len(series[key]) < times {
				series[key] = append(series[key], "_x60")
			}
			series[key] = append(series[key], fmt.Sprintf("%vx59", metric.Gauge.GetValue()))
		}
	}
	for key, values := range series {
		if len(values) == times && strings.Contains(key, fmt.Sprintf("job=%q", job)) {
			series[key] = append(values, "_x60")
		}
	}
}

// ruleTest is a test of promtool.
type ruleTest struct {
	RuleFiles          []string     `json:"rule_files"`
	EvaluationInterval string       `json:"evaluation_interval"`
	Tests              []seriesTest `json:"tests"`
}

type seriesTest struct {
	Interval    string           `json:"interval"`
	InputSeries []inputSeries    `json:"input_series"`
	Expressions []expressionTest `json:"promql_expr_test"`
}

type inputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type expressionTest struct {
	Expr       string   `json:"expr"`
	EvalTime   string   `json:"eval_time"`
	ExpSamples []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// alertsOf writes the rules of config/monitoring where promtool reads them, and returns the names of all alerts.
func alertsOf(t *testing.T, file string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(world.root, "config/monitoring/rules.yaml"))
	must.Succeed(t, err)
	var rules struct {
		Spec struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	must.Succeed(t, yaml.Unmarshal(data, &rules))
	if data, err = yaml.Marshal(rules.Spec); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, os.WriteFile(file, data, 0o600))
	for _, rule := range rules.Spec.Groups[0].Rules {
		names = append(names, rule["alert"].(string))
	}
	return names
}

// dashboardAsRules writes the queries of the dashboard as rules, so that promtool parses them.
func dashboardAsRules(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(world.root, "config/monitoring/dashboard.json"))
	must.Succeed(t, err)
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	must.Succeed(t, json.Unmarshal(data, &dashboard))
	var rules []map[string]string
	for i, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			rules = append(rules, map[string]string{"record": fmt.Sprint("panel:", i), "expr": strings.ReplaceAll(target.Expr, "$namespace", ".*")})
		}
	}
	data, err = yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(file, data, 0o600))
}

// testAlerts has promtool evaluate the rules on samples of times that were good, bad and good, each longer than a week.
func testAlerts(t *testing.T, series map[string][]string) {
	t.Helper()
	g, dir := NewWithT(t), t.TempDir()
	names := alertsOf(t, filepath.Join(dir, "rules.yaml"))
	g.Expect(names).To(HaveLen(11))
	test := seriesTest{Interval: "3h"} // an alert may wait for a week
	for _, key := range slices.Sorted(maps.Keys(series)) {
		test.InputSeries = append(test.InputSeries, inputSeries{key, strings.Join(series[key], " ")})
	}
	for _, name := range names {
		times := map[int]bool{59: false, 119: true, 179: false}
		if name == "ChandlerAbsent" { // after the last sample
			times = map[int]bool{59: false, 119: false, 239: true}
		}
		for at, fires := range times {
			expect := expressionTest{Expr: fmt.Sprintf(`group by (alertname) (ALERTS{alertname=%q,alertstate="firing"})`, name), EvalTime: fmt.Sprint(3*at, "h")}
			if fires {
				expect.ExpSamples = []sample{{fmt.Sprintf("{alertname=%q}", name), 1}}
			}
			test.Expressions = append(test.Expressions, expect)
		}
	}
	data, err := yaml.Marshal(ruleTest{RuleFiles: []string{"rules.yaml"}, EvaluationInterval: "3h", Tests: []seriesTest{test}})
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(dir, "test.yaml")
	g.Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
	promtool := providePromtool(t)
	dashboardAsRules(t, filepath.Join(dir, "dashboard.yaml"))
	for _, args := range [][]string{{"check", "rules", filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "dashboard.yaml")}, {"test", "rules", file}} {
		out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s\n%s", out, bytes.ReplaceAll(data, []byte("\n"), []byte("\n  ")))
	}
}

// countUnmanaged says in the status of the tenant's instance how many Clusters no instance manages, as the shared deployment would.
func (tn *tenant) countUnmanaged(clusters int) {
	tn.t.Helper()
	all := &addonsv1.ProviderInstanceList{}
	must.Succeed(tn.t, world.hub.List(tn.t.Context(), all, client.InNamespace(tn.namespace)))
	for i := range all.Items {
		before := all.Items[i].DeepCopy()
		all.Items[i].Status.UnmanagedClusters = int32(clusters)
		must.Succeed(tn.t, world.hub.Status().Patch(tn.t.Context(), &all.Items[i], client.MergeFrom(before)))
	}
}

// working is a line of the metrics of an instance that works.
const working = `chandler_instance_ready\{reason="Ready"\} 1`

// TestAlerts has everything go wrong that there is an alert for, and sets it right.
func TestAlerts(t *testing.T) {
	long.Test(t)
	t.Parallel()
	r := newRolling(t, "alerts", 3)
	good := r.writeChart("sourced", "1.0.0", configMapChart)
	r.makeStack("sourced", labels("env=prod"), r.addon("sourced", good))
	r.makeStack("gone", labels("env=prod"), r.addon("gone", good))
	staged := func(approval addonsv1.RolloutApproval) func(*addonsv1.AddonStackSpec) {
		return rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), Waves: []addonsv1.RolloutWave{{Name: "all", Size: ofNumber(3), Approval: approval}}})
	}
	for name, approval := range map[string]addonsv1.RolloutApproval{"halts": addonsv1.RolloutApprovalNone, "waits": addonsv1.RolloutApprovalRequired} {
		r.makeStack(name, labels("env=prod"), r.addon(name, r.path, func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor("one", "none") }))
		r.awaitReady(name, "it is installed")
		r.changeStack(name, staged(approval))
	}
	for _, stack := range []string{"platform", "sourced", "gone"} {
		r.awaitReady(stack, "all is well")
	}
	other := newTenant(t)
	second := other.startManager()
	poll(t, patience, "the second one works", func() error { return shows(second, working) })
	poll(t, patience, "it says its version", func() error { return shows(second, fmt.Sprintf(`chandler_build_info\{version=%q\} 1`, testVersion)) })

	series, first := map[string][]string{}, r.manager
	scrapeBoth := func(times int) {
		scrape(t, first, "first", times, series)
		scrape(t, second, "second", times, series)
	}
	scrapeBoth(0)

	second.Stop(t)
	second = other.launch("--namespace=" + r.namespace + "-none") // where it has no rights
	poll(t, patience, "the second one doesn't", func() error { return shows(second, `chandler_instance_ready\{reason="\w+"\} 0`) })
	change(r.tenant, newCluster(r.namespace, "alerts-1", nil), func(c *clusterv1.Cluster) { c.Labels["bad"] = "yes" })
	r.edit("two", "bad")
	r.awaitCluster("alerts-1", "it fails", phase("settings", addonsv1.AddonFailed, "", ""))
	r.changeAddon("sourced", "sourced", func(a *addonsv1.Addon) { a.Chart.Path = "nowhere-1.0.0" })
	r.awaitStack("sourced", "there is no such chart", addonsv1.SourcesReadyCondition, metav1.ConditionFalse, "", "")
	r.remove(r.newStack("gone", nil))
	r.awaitCluster("alerts-0", "the removal is held", condition(addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.RemovalHeldReason, ""))
	writes := func(stack, text, bad string) {
		r.changeAddon(stack, stack, func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor(text, bad) })
	}
	phaseOf := func(stack string, phase addonsv1.RolloutPhase, status metav1.ConditionStatus) {
		r.awaitStack(stack, string(phase), addonsv1.RolledOutCondition, status, string(phase), "")
	}
	writes("halts", "two", "env")
	writes("waits", "two", "none")
	phaseOf("halts", addonsv1.RolloutHalted, metav1.ConditionFalse)
	phaseOf("waits", addonsv1.RolloutWaitingForApproval, metav1.ConditionFalse)
	silent := r.startProxy("silent", workloadServer(t, 2))
	silent.refuse()
	r.makeClusterObject("silent", labels("env=prod"))
	poll(t, patience, "it is noticed", func() error {
		n, err := first.Sum("chandler_fleet_clusters", `phase="Unreachable"`)
		if err == nil && n != 1 {
			err = fmt.Errorf("%v can't be reached", n)
		}
		return err
	})
	unmanaged := func(clusters int, now string) {
		r.countUnmanaged(clusters)
		poll(t, patience, "it says how many Clusters are nobody's", func() error { return shows(first, "chandler_instance_unmanaged_clusters "+now) })
	}
	unmanaged(2, "2")
	scrapeBoth(1)
	unmanaged(0, "0")

	silent.open(t)
	r.newPlugin(mayAll...).does("confirm", "gone", "--yes")
	r.changeAddon("sourced", "sourced", func(a *addonsv1.Addon) { a.Chart.Path = good })
	r.edit("three", "none")
	writes("halts", "one", "none")
	phaseOf("halts", addonsv1.RolloutCompleted, metav1.ConditionTrue)
	r.annotateRevision(r.latestRevision("waits"), addonsv1.RolloutApprovedAnnotation, "all")
	phaseOf("waits", addonsv1.RolloutCompleted, metav1.ConditionTrue)
	r.awaitReady("platform", "it is well again")
	r.awaitReady("sourced", "it is well again")
	r.awaitCluster("alerts-0", "what was held is removed", ready("settings", "sourced", "halts", "waits"))
	r.awaitCluster("silent", "what was held is removed", ready("settings", "sourced", "halts", "waits"))
	second.Stop(t)
	second = other.startManager()
	poll(t, patience, "the second one works again", func() error { return shows(second, working) })
	scrapeBoth(2)
	series[`chandler_stack_versions_waiting{namespace="team",stack="platform"}`] = []string{"0x59", "1x59", "0x59"}
	testAlerts(t, series)
}

// shows says whether the metrics of a manager have a line that matches.
func shows(m *manager, line string) error {
	response, err := http.Get(m.Metrics)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err == nil && !regexp.MustCompile("(?m)^"+line+"$").Match(page) {
		err = fmt.Errorf("there is no %s", line)
	}
	return err
}
