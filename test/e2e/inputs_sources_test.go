// SPDX-License-Identifier: Apache-2.0

package e2e

import addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"

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
		"port-dead":             unreachable(func(i *input) string { return freeAddress(i.t) }),
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
