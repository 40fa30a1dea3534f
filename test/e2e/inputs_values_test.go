// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// valueInputs are wrong in values, templates and what is made of them.
func valueInputs(charts inputCharts) map[string]func(*input) {
	from := func(key string) func(*addonsv1.Addon) {
		return func(a *addonsv1.Addon) {
			a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: a.Name, Key: key}}
		}
	}
	setSecret := func(i *input, data string) func() {
		return func() {
			change(i.tenant, i.secret(i.name, nil), func(s *corev1.Secret) { s.Data = map[string][]byte{"values.yaml": []byte(data)} })
		}
	}
	template := func(wrong string) func(*input) {
		return func(i *input) {
			i.says(i.made(i.addon(i.name, charts.settings, withTemplate(wrong))))
			i.fixed(i.changed(withTemplate("text: '{{ .Cluster.metadata.name }}'")))
		}
	}
	return map[string]func(*input){
		"values-typo": func(i *input) {
			right := withValues(map[string]any{"replicas": 2})
			i.runs(i.addon(i.name, charts.strict, right))
			i.says(i.changed(withValues(map[string]any{"replica": 2})))
			i.fixed(i.changed(right))
		},
		"values-wrong-type": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.strict, withValues(map[string]any{"replicas": "many"}))))
			i.fixed(i.changed(withValues(map[string]any{"replicas": 2})))
		},
		"secret-missing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.settings, from("values.yaml"))))
			i.fixed(func() { i.create(i.secret(i.name, map[string]string{"values.yaml": "text: here"})) })
		},
		"secret-key-missing": func(i *input) {
			i.create(i.secret(i.name, map[string]string{"value.yaml": "text: here"}))
			i.says(i.made(i.addon(i.name, charts.settings, from("values.yaml"))))
			i.fixed(setSecret(i, "text: here"))
		},
		"secret-value-against-schema": func(i *input) {
			i.create(i.secret(i.name, map[string]string{"values.yaml": "replicas: hush"}))
			i.says(i.made(i.addon(i.name, charts.strict, from("values.yaml"))))
			i.fixed(setSecret(i, "replicas: 2"))
		},
		"template-missing-field":  template("text: '{{ .Cluster.spec.nowhere }}'"),
		"template-makes-bad-yaml": template("text: x\nlist: [{{ .Cluster.metadata.name }}"),
		"template-random":         template("text: '{{ randAlphaNum 8 }}'"),
		"chart-template-fails": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.needsDomain)))
			i.fixed(i.changed(withValues(map[string]any{"domain": "example.org"})))
		},
		"chart-dependency-missing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.umbrella)))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.Chart.Path = charts.settings }))
		},
		"patch-fits-nothing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.settings, func(a *addonsv1.Addon) {
				a.Patches = []addonsv1.Patch{{Target: &addonsv1.PatchTarget{Kind: "Deployment", Name: "shop"}, Patch: "spec: {replicas: 2}"}}
			})))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.Patches = nil }))
		},
		"readiness-names-no-field": func(i *input) {
			check := func(expression string) func(*addonsv1.Addon) {
				return func(a *addonsv1.Addon) {
					a.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "apps/v1", Kind: "Deployment", Expression: expression}}
				}
			}
			i.says(i.made(i.addon(i.name, charts.web, check("self.status.availableReplica >= 1"))))
			i.fixed(i.changed(check("self.status.availableReplicas >= 1")))
		},
	}
}
