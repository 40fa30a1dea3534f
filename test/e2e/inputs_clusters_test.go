// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

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
