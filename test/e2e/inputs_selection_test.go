// SPDX-License-Identifier: Apache-2.0

package e2e

import addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"

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
