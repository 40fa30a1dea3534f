// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// stack returns the add-ons: 49 objects, and seven of hooks. One value is other in each generation. The fifth add-on has
// five objects more.
func (f *fleet) stack(generation int) *addonsv1.AddonStack {
	values := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name = namespace, "platform"
	if f.size.Instances > 1 {
		s.Labels = map[string]string{clusterv1.WatchLabel: addonsv1.SharedWatchFilter}
	}
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	addons := []addonsv1.Addon{
		{Name: "cilium", Namespace: "kube-system", Chart: addonsv1.ChartSource{Path: "cilium-1.19.5.tgz"}, ValuesTemplate: "cluster:\n  name: '{{ .Cluster.metadata.name }}'\n"},
		{Name: "metrics-server", Namespace: "kube-system", Chart: addonsv1.ChartSource{Path: "metrics-server-3.13.1.tgz"},
			Values: values(fmt.Sprintf(`{"apiService": {"create": false}, "replicas": %d}`, generation))},
		{Name: "ingress-nginx", Namespace: "ingress-nginx", Chart: addonsv1.ChartSource{Path: "ingress-nginx-4.15.1.tgz"}, Values: values(`{"controller": {"service": {"type": "ClusterIP"}}}`)},
		{Name: "kube-state-metrics", Namespace: "monitoring", Chart: addonsv1.ChartSource{Path: "kube-state-metrics-8.4.0.tgz"}},
		{Name: "tenant-metrics", Namespace: "tenant-metrics", Chart: addonsv1.ChartSource{Path: "kube-state-metrics-8.4.0.tgz"}},
	}
	s.Spec.Addons = addons[:f.size.Addons]
	return s
}
