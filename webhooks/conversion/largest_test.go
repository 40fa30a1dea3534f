// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// An API server converts a LIST object by object, or all at once: within what webhooks
// accept, also where there are many large ones.
func largeLists(t *testing.T, s *server) {
	const stacks = 80
	note := strings.Repeat("x", 250<<10) // 20 MiB together
	for i := range stacks {
		stack := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{"large": ""}, Annotations: map[string]string{"example.org/note": note},
		}}
		stack.Spec.ClusterSelector = &metav1.LabelSelector{}
		stack.Spec.Addons = []addonsv1.Addon{{Name: "a", Chart: addonsv1.ChartSource{Path: "chart"}}}
		if err := s.Create(t.Context(), stack); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"", "0"} { // from etcd, and from the watch cache
		list := &addonsv1alpha1.AddonStackList{}
		err := s.List(t.Context(), list, client.HasLabels{"large"}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil || len(list.Items) != stacks {
			t.Errorf("a LIST as of %q gives %d, %v", version, len(list.Items), err)
		}
	}
}
