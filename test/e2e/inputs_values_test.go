// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
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

// objectInputs are wrong in what a chart's objects meet in a cluster.
func objectInputs(charts inputCharts) map[string]func(*input) {
	return map[string]func(*input){
		"kind-missing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.monitor)))
			i.fixed(i.changed(withValues(map[string]any{"monitor": false})))
		},
		"hook-fails": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.failingHook)))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.Chart.Path = charts.workingHook }))
		},
		"image-missing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.web, withValues(map[string]any{"fate": controlplane.PodNoImage}))))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.Values = nil }))
		},
		"service-account-without-rights": func(i *input) {
			account := func(name string) func() {
				return func() { i.changeStack(i.name, func(spec *addonsv1.AddonStackSpec) { spec.ServiceAccountName = name }) }
			}
			s := i.newStack(i.name, everywhere, i.addon(i.name, charts.settings))
			s.Spec.ServiceAccountName = "visitor"
			i.says(func() { i.create(s) })
			i.fixed(account(""))
		},
		"quota": func(i *input) {
			limited := i.namespace + "-quota"
			allow := func(most string) {
				i.everyServer(func(s *server) {
					quota := &corev1.ResourceQuota{}
					quota.Namespace, quota.Name = limited, "small"
					hard := corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse(most)}
					changeOn(i.t, s, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard = hard })
					await(i.t, s, quota, patience, "it is in force", func(q *corev1.ResourceQuota) error {
						if !equality.Semantic.DeepEqual(q.Status.Hard, hard) {
							return errors.New("it isn't counted yet")
						}
						return nil
					})
				})
			}
			i.everyServer(func(s *server) {
				s.createNamespace(i.t, limited)
				quota := &corev1.ResourceQuota{}
				quota.Namespace, quota.Name = limited, "small"
				i.createOn(s, quota)
			})
			allow("0")
			i.says(i.made(i.addon(i.name, charts.settings, inNamespace(limited))))
			i.fixed(func() { allow("9") })
		},
		"object-of-somebody-else": func(i *input) {
			i.everyServer(func(s *server) {
				foreign := i.configMapOf(i.name)
				foreign.Data = map[string]string{"text": "somebody's"}
				must.Succeed(i.t, s.Create(i.t.Context(), foreign, client.FieldOwner("kubectl-create")))
			})
			i.says(i.made(i.addon(i.name, charts.settings)))
			i.fixed(i.changed(func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt }))
		},
		"object-refused": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.labelled)))
			i.fixed(i.changed(withValues(map[string]any{"public": "'yes'", "web": "'yes'"})))
		},
	}
}
