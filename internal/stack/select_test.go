// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

func TestSelects(t *testing.T) {
	labelled := func(labels map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	cases := map[string]struct {
		namespace string
		spec      addonsv1.AddonStackSpec
		want      bool
		wantErr   bool
	}{
		"an empty selector selects every Cluster": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}}, want: true,
		},
		"no selector at all selects none": {},
		"a matching label selects": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: labelled(map[string]string{"env": "prod"})}, want: true,
		},
		"another label does not": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: labelled(map[string]string{"env": "test"})},
		},
		"a Cluster of another namespace is never selected": {
			namespace: "other",
			spec:      addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}},
		},
		"one of several class names will do": {
			spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1", "v2"}}, want: true,
		},
		"another class name does not": {
			spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1"}},
		},
		"labels and class have to match both": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: labelled(map[string]string{"env": "test"}), ClassNames: []string{"v2"}},
		},
		"a selector that can't be read is an error, not a no": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near", Values: []string{"prod"}}},
			}},
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"env": "prod"}}}
			c.Spec.Topology.ClassRef.Name = "v2"
			if tc.namespace != "" {
				c.Namespace = tc.namespace
			}
			got, err := stack.Selects("team", &tc.spec, member.OfCluster(c))
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("Selects() = %v, %v; want %v, error: %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestClassNamesNeverSelectClustersWithoutClass(t *testing.T) {
	spec := &addonsv1.AddonStackSpec{ClassNames: []string{""}}
	if got, _ := stack.Selects("", spec, member.OfCluster(&clusterv1.Cluster{})); got {
		t.Error("a Cluster without a class was selected by its empty class name")
	}
}

// A stack selects from Clusters alone, unless it names other kinds: a source that an instance gets
// later brings no add-ons to anybody.
func TestKindsOfClusters(t *testing.T) {
	everything := &metav1.LabelSelector{}
	profile := &member.Member{ClusterReference: addonsv1.ClusterReference{Kind: addonsv1.KindClusterProfile, Name: "prod"}, Namespace: "team"}
	cluster := &member.Member{ClusterReference: addonsv1.ClusterReference{Kind: addonsv1.KindCluster, Name: "prod"}, Namespace: "team", ClassName: "v2"}
	for name, tc := range map[string]struct {
		spec             addonsv1.AddonStackSpec
		cluster, profile bool
	}{
		"no kinds":         {spec: addonsv1.AddonStackSpec{ClusterSelector: everything}, cluster: true},
		"profiles":         {spec: addonsv1.AddonStackSpec{ClusterSelector: everything, ClusterKinds: []string{"ClusterProfile"}}, profile: true},
		"both":             {spec: addonsv1.AddonStackSpec{ClusterSelector: everything, ClusterKinds: []string{"ClusterProfile", "Cluster"}}, cluster: true, profile: true},
		"both, of a class": {spec: addonsv1.AddonStackSpec{ClassNames: []string{"v2"}, ClusterKinds: []string{"ClusterProfile", "Cluster"}}, cluster: true},
	} {
		for m, want := range map[*member.Member]bool{cluster: tc.cluster, profile: tc.profile} {
			if got, err := stack.Selects("team", &tc.spec, m); got != want || err != nil {
				t.Errorf("%s, %s: %t, %v", name, m, got, err)
			}
		}
	}
}
