// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// newStack is an AddonStack that selects Clusters by labels, all if there are none.
func (tn *tenant) newStack(name string, selector map[string]string, addons ...addonsv1.Addon) *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name = tn.namespace, name
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: selector}
	s.Spec.Addons = addons
	return s
}

// makeStack makes the AddonStack.
func (tn *tenant) makeStack(name string, selector map[string]string, addons ...addonsv1.Addon) *addonsv1.AddonStack {
	tn.t.Helper()
	s := tn.newStack(name, selector, addons...)
	tn.create(s)
	return s
}

// stackForClass is an AddonStack for the Clusters of a ClusterClass.
func (tn *tenant) stackForClass(name, class string, addons ...addonsv1.Addon) *addonsv1.AddonStack {
	s := tn.newStack(name, nil, addons...)
	s.Spec.ClusterSelector, s.Spec.ClassNames = nil, []string{class}
	return s
}

// pauseStack pauses an AddonStack.
func (tn *tenant) pauseStack(name string) {
	tn.t.Helper()
	change(tn, tn.newStack(name, nil), func(s *addonsv1.AddonStack) { s.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
}

// install makes stack platform for all Clusters of newProd, and returns once it is Ready.
func (tn *tenant) install(addons ...addonsv1.Addon) {
	tn.t.Helper()
	tn.makeStack("platform", labels("env=prod"), addons...)
	tn.awaitReady("platform", "it is to be installed")
}

// addon is one with the chart at a path, in the tenant's own namespace.
func (tn *tenant) addon(name, path string, more ...func(*addonsv1.Addon)) addonsv1.Addon {
	a := addonsv1.Addon{Name: name, Namespace: tn.namespace, Chart: addonsv1.ChartSource{Path: path}}
	for _, m := range more {
		m(&a)
	}
	return a
}

// small is an add-on with configMapChart.
func (tn *tenant) small(name string, more ...func(*addonsv1.Addon)) addonsv1.Addon {
	tn.t.Helper()
	return tn.addon(name, tn.smallChart(), more...)
}

// fromOCI sets spec.addons[].chart, at the URL of a repository in a registry.
func fromOCI(url, version string, more ...func(*addonsv1.OCISource)) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: url}, Version: version}
		for _, m := range more {
			m(a.Chart.OCI)
		}
	}
}

// plainHTTP has a registry have no TLS.
func plainHTTP(o *addonsv1.OCISource) { o.PlainHTTP = new(true) }

// withValues sets spec.addons[].values.
func withValues(values map[string]any) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.Values = valuesOf(values) }
}

func valuesOf(values map[string]any) *apiextensionsv1.JSON {
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // of a literal
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// withTemplate sets spec.addons[].valuesTemplate.
func withTemplate(text string) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.ValuesTemplate = text }
}

// after sets spec.addons[].dependsOn.
func after(names ...string) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.DependsOn = names }
}

// inNamespace sets spec.addons[].namespace.
func inNamespace(name string) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.Namespace = name }
}

// valuesFromSecrets sets spec.addons[].valuesFrom.
func valuesFromSecrets(names ...string) func(*addonsv1.Addon) {
	return withValuesFrom(fromSecrets(names...)...)
}

// changeStack changes the spec of an AddonStack.
func (tn *tenant) changeStack(name string, mutate func(*addonsv1.AddonStackSpec)) *addonsv1.AddonStack {
	tn.t.Helper()
	return change(tn, tn.newStack(name, nil), func(s *addonsv1.AddonStack) { mutate(&s.Spec) })
}

// changeAddon changes one add-on of an AddonStack.
func (tn *tenant) changeAddon(stack, addon string, mutate func(*addonsv1.Addon)) *addonsv1.AddonStack {
	tn.t.Helper()
	return tn.changeStack(stack, func(spec *addonsv1.AddonStackSpec) {
		for i := range spec.Addons {
			if spec.Addons[i].Name == addon {
				mutate(&spec.Addons[i])
				return
			}
		}
		panic(fmt.Sprintf("AddonStack %s has no add-on %s", stack, addon))
	})
}
