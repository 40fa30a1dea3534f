// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
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
			i.mended(i.changed(withValues(map[string]any{"monitor": false})))
		},
		"hook-fails": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.failingHook)))
			i.mended(i.changed(func(a *addonsv1.Addon) { a.Chart.Path = charts.workingHook }))
		},
		"image-missing": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.web, withValues(map[string]any{"fate": controlplane.PodNoImage}))))
			i.mended(i.changed(func(a *addonsv1.Addon) { a.Values = nil }))
		},
		"service-account-without-rights": func(i *input) {
			account := func(name string) func() {
				return func() { i.changeStack(i.name, func(spec *addonsv1.AddonStackSpec) { spec.ServiceAccountName = name }) }
			}
			i.runs(i.addon(i.name, charts.settings))
			i.says(account("visitor"))
			i.mended(account(""))
		},
		"quota": func(i *input) {
			limited := i.namespace + "-quota"
			quotas := map[*server]*corev1.ResourceQuota{}
			i.everyServer(func(s *server) {
				s.createNamespace(i.t, limited)
				quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("1")}}}
				quota.Namespace, quota.Name = limited, "small"
				i.createOn(s, quota)
				quotas[s] = quota
				await(i.t, s, quota, patience, "it is full", func(q *corev1.ResourceQuota) error {
					if used := q.Status.Used[corev1.ResourceConfigMaps]; used.Value() < 1 {
						return errors.New("the ConfigMap that each namespace has isn't counted yet")
					}
					return nil
				})
			})
			i.says(i.made(i.addon(i.name, charts.settings, inNamespace(limited))))
			i.mended(func() {
				for s, quota := range quotas {
					changeOn(i.t, s, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard[corev1.ResourceConfigMaps] = resource.MustParse("9") })
				}
			})
		},
		"object-of-somebody-else": func(i *input) {
			i.everyServer(func(s *server) {
				foreign := i.configMapOf(i.name)
				if err := s.Create(i.t.Context(), foreign, client.FieldOwner("kubectl-create")); err != nil {
					i.t.Fatal(err)
				}
			})
			i.says(i.made(i.addon(i.name, charts.settings)))
			i.mended(i.changed(func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt }))
		},
		"object-refused": func(i *input) {
			i.says(i.made(i.addon(i.name, charts.labelled)))
			i.mended(i.changed(withValues(map[string]any{"public": "'yes'", "web": "'yes'"})))
		},
	}
}
