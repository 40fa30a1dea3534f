// SPDX-License-Identifier: Apache-2.0

package unmanaged_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/unmanaged"
)

func cluster(namespace, filter string) metav1.PartialObjectMetadata {
	c := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	if filter != "" {
		c.Labels = map[string]string{clusterv1.WatchLabel: filter}
	}
	return c
}

// holder returns an instance that holds its scope.
func holder(filter string, namespaces ...string) addonsv1.ProviderInstance {
	return addonsv1.ProviderInstance{
		Spec:   addonsv1.ProviderInstanceSpec{Namespaces: namespaces, WatchFilter: filter, Holder: "a", Claim: addonsv1.ScopeClaiming},
		Status: addonsv1.ProviderInstanceStatus{Grant: &addonsv1.ScopeGrant{Holder: "a", State: addonsv1.GrantGranted}},
	}
}

func TestCount(t *testing.T) {
	refused := holder("", "team-a")
	refused.Status.Grant.State = addonsv1.GrantRefused
	clusters := []metav1.PartialObjectMetadata{
		cluster("team-a", ""), cluster("team-a", "blue"), cluster("team-a", "bleu"), cluster("team-b", "blue"), cluster("team-b", ""), cluster("other", ""),
	}
	for name, c := range map[string]struct {
		instances []addonsv1.ProviderInstance
		want      []int32
	}{
		"filters":                   {[]addonsv1.ProviderInstance{holder("blue", "team-a"), holder("green", "team-a", "team-b")}, []int32{2, 4}},
		"a namespace of its own":    {[]addonsv1.ProviderInstance{holder("blue", "team-a"), holder("", "team-b")}, []int32{2, 0}},
		"all":                       {[]addonsv1.ProviderInstance{holder("")}, []int32{0}},
		"a filter in all":           {[]addonsv1.ProviderInstance{holder("blue")}, []int32{4}},
		"one that hasn't its scope": {[]addonsv1.ProviderInstance{holder("blue", "team-a"), refused}, []int32{2, 0}},
		"nobody":                    {nil, nil},
	} {
		if got := unmanaged.Count(clusters, c.instances); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
