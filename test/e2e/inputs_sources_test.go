// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	chandler "github.com/cluster-chandler/chandler/test/manager"
)

// sourceInputs are wrong in the place that a chart is to come from.
func sourceInputs(charts inputCharts) map[string]func(*input) {
	helm := func(host, path, name, version string) func(*addonsv1.Addon) {
		return func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: "http://" + host + path, Chart: name, PlainHTTP: new(true)}, Version: version}
		}
	}
	repository := func(path, name, version string) func(*input) {
		return func(i *input) {
			host := i.webServer()
			i.says(i.made(i.addon(i.name, "", helm(host, path, name, version))))
			i.fixed(i.changed(helm(host, "/charts", "settings", "1.0.0")))
		}
	}
	unreachable := func(host func(*input) string) func(*input) {
		return func(i *input) {
			i.says(i.made(i.addon(i.name, "", helm(host(i), "/charts", "settings", "1.0.0"))))
			i.fixed(i.changed(helm(i.webServer(), "/charts", "settings", "1.0.0")))
		}
	}
	return map[string]func(*input){
		"version-missing":       repository("/charts", "settings", "9.9.9"),
		"repository-path-wrong": repository("/chart", "settings", "1.0.0"),
		"chart-name-wrong":      repository("/charts", "setting", "1.0.0"),
		"port-dead":             unreachable(func(i *input) string { return chandler.FreeAddress(i.t) }),
		"host-unknown":          unreachable(func(*input) string { return "charts.invalid" }),
		"registry-is-web-server": func(i *input) {
			host := i.webServer()
			i.says(i.made(i.addon(i.name, "", fromOCI("oci://"+host+"/charts/settings", "1.0.0", plainHTTP))))
			i.fixed(i.changed(helm(host, "/charts", "settings", "1.0.0")))
		},
		"path-wrong": func(i *input) {
			i.says(i.made(i.addon(i.name, "setings-1.0.0")))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.Chart.Path = charts.settings }))
		},
	}
}

// makeBadClusters makes the Clusters to which something happens: for each such input one.
func (i *input) makeBadClusters() {
	i.t.Helper()
	i.makeCluster("lima", workloadServer(i.t, 2), labels("name=lima"))
	i.makeCluster("porto", workloadServer(i.t, 1), labels("name=porto"))
	i.tokyo = i.startProxy("tokyo", workloadServer(i.t, 2))
	i.makeClusterObject("tokyo", labels("name=tokyo"))

	i.makeClusterWithoutRights("lagos", workloadServer(i.t, 1), labels("name=lagos"))
}

// on makes the stack on bergen, with which nothing is wrong, and another Cluster.
func (i *input) on(cluster, chart string) {
	i.t.Helper()
	s := i.newStack(i.name, nil, i.addon(i.name, chart))
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: []string{"bergen", cluster}},
	}}
	i.create(s)
}

// clusterInputs are inputs that are wrong with one of two Clusters.
func clusterInputs(charts inputCharts) map[string]func(*input) {
	return map[string]func(*input){
		"kubeconfig-without-rights": func(i *input) {
			i.says(func() { i.on("lagos", charts.settings) })
			i.fixed(func() { i.writeKubeconfig("lagos", i.userOn(workloadServer(i.t, 1), "lagos-admin").Kubeconfig) })
		},
		"kubeconfig-garbage": func(i *input) {
			i.on("porto", charts.settings)
			i.awaitReady(i.name, "it has a kubeconfig")
			i.says(func() { i.writeKubeconfig("porto", []byte("no: kubeconfig")) })
			i.fixed(func() { i.writeKubeconfig("porto", i.userOn(workloadServer(i.t, 1), "porto").Kubeconfig) })
		},
		"api-server-hangs": func(i *input) {
			i.on("tokyo", charts.settings)
			i.awaitReady(i.name, "it answers")
			i.says(func() { i.tokyo.swallow(i.t) })
			i.fixed(func() { i.tokyo.open(i.t) })
		},
		"cluster-paused": func(i *input) {
			i.on("lima", charts.settings)
			i.awaitReady(i.name, "it isn't paused")
			pause := func(is bool) func() {
				return func() {
					i.pauseCluster("lima", is)
				}
			}
			i.says(pause(true))
			i.fixed(pause(false))
		},
		"stack-paused": func(i *input) {
			i.runs(i.addon(i.name, charts.settings))
			pause := func(annotations map[string]string) func() {
				return func() {
					change(i.tenant, i.newStack(i.name, nil), func(s *addonsv1.AddonStack) { s.Annotations = annotations })
				}
			}
			i.says(pause(map[string]string{clusterv1.PausedAnnotation: ""}))
			i.fixed(pause(nil))
		},
	}
}

// selectionInputs are wrong in the Clusters, the releases or the other stacks that a stack names.
func selectionInputs(charts inputCharts) map[string]func(*input) {
	selecting := func(i *input, pairs ...string) func() {
		return func() {
			i.changeStack(i.name, func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels(pairs...) })
		}
	}
	return map[string]func(*input){
		"selector-typo": func(i *input) {
			i.runs(i.addon(i.name, charts.settings))
			i.says(selecting(i, "fleet=al"))
			i.fixed(selecting(i, "fleet=all"))
		},
		"selector-matches-nothing": func(i *input) {
			i.says(func() { i.makeStack(i.name, labels("fleet=al"), i.addon(i.name, charts.settings)) })
			i.fixed(selecting(i, "fleet=all"))
		},
		"namespace-wrong": func(i *input) {
			s := i.newStack(i.name, everywhere, i.addon(i.name, charts.settings))
			s.Namespace = i.elsewhere
			i.saysIn(i.elsewhere, func() { i.create(s) })
			i.fixed(func() {
				i.remove(s)
				i.made(i.addon(i.name, charts.settings))()
			})
		},
		"release-taken": func(i *input) {
			i.makeStack("first", everywhere, i.addon("shop", charts.settings))
			i.awaitReady("first", "the release is its own")
			i.says(i.made(i.addon("shop", charts.settings, withValues(map[string]any{"text": "rival"}))))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.Name = i.name }))
		},
		"dependency-missing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.settings, after("nowhere/network"))))
			i.fixed(i.changed(after()))
		},
		"dependency-missing-installed": func(i *input) {
			i.runs(i.addon(i.name, charts.settings))
			i.says(i.changed(after("nowhere/network")))
			i.fixed(i.changed(after()))
		},
	}
}
