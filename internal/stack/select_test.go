// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// A stack selects from Clusters of its namespace alone, unless it names other kinds: a source that an instance gets later brings
// no add-ons to anybody.
func TestSelects(t *testing.T) {
	of := func(name, kind, namespace, class string) *member.Member {
		return &member.Member{
			ClusterReference: addonsv1.ClusterReference{Kind: kind, Name: name}, Namespace: namespace, ClassName: class,
			Labels: map[string]string{"env": "prod"},
		}
	}
	const cluster, profile = addonsv1.KindCluster, addonsv1.KindClusterProfile
	members := []*member.Member{
		of("classless", cluster, "team", ""), of("cluster", cluster, "team", "v2"), of("elsewhere", cluster, "other", "v2"), of("profile", profile, "team", ""),
	}
	type list = []string
	everything := &metav1.LabelSelector{}
	env := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": value}}
	}
	unknown := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near", Values: list{"prod"}}}}
	for name, tc := range map[string]struct {
		selector       *metav1.LabelSelector
		classes, kinds list
		want           string // "!" is an error
	}{
		"an empty selector selects every Cluster":             {everything, nil, nil, "classless cluster"},
		"no selector at all selects none":                     {nil, nil, nil, ""},
		"a matching label selects":                            {env("prod"), nil, nil, "classless cluster"},
		"another label does not":                              {env("test"), nil, nil, ""},
		"one of several class names will do":                  {nil, list{"v1", "v2"}, nil, "cluster"},
		"another class name does not":                         {nil, list{"v1"}, nil, ""},
		"an empty class name is that of no Cluster":           {nil, list{""}, nil, ""},
		"labels and class have to match both":                 {env("test"), list{"v2"}, nil, ""},
		"a selector that can't be read is an error, not a no": {unknown, nil, nil, "classless! cluster!"},
		"profiles":         {everything, nil, list{profile}, "profile"},
		"both":             {everything, nil, list{profile, cluster}, "classless cluster profile"},
		"both, of a class": {nil, list{"v2"}, list{profile, cluster}, "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &addonsv1.AddonStackSpec{ClusterSelector: tc.selector, ClassNames: tc.classes, ClusterKinds: tc.kinds}
			var got []string
			for _, m := range members {
				if selects, err := stack.Selects("team", spec, m); err != nil {
					got = append(got, m.Name+"!")
				} else if selects {
					got = append(got, m.Name)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("it selects %q, want %q", got, tc.want)
			}
		})
	}
}
