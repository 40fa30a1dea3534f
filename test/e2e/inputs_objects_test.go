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
)

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
				must(i.t, s.Create(i.t.Context(), foreign, client.FieldOwner("kubectl-create")))
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
