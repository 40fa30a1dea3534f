// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestValidate(t *testing.T) {
	all := &metav1.LabelSelector{}
	cases := map[string]struct {
		spec   addonsv1.AddonStackSpec
		reason string // "" for a valid spec
		says   []string
	}{
		"a plain spec is valid": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a"}, {Name: "b", DependsOn: []string{"a"}}}},
		},
		"a selector with an unknown operator": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}},
			}},
			reason: addonsv1.InvalidSelectorReason,
			says:   []string{"spec.clusterSelector", "Near"},
		},
		"a dependency that isn't there": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", DependsOn: []string{"ghost"}}}},
			reason: addonsv1.UnknownDependencyReason,
			says:   []string{"spec.addons[0].dependsOn[0]", "ghost"},
		},
		"a cycle is named in full": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{
				{Name: "a", DependsOn: []string{"b"}}, {Name: "b", DependsOn: []string{"c"}}, {Name: "c", DependsOn: []string{"a"}},
			}},
			reason: addonsv1.DependencyCycleReason,
			says:   []string{"spec.addons[0].dependsOn", "a -> b -> c -> a"},
		},
		"two add-ons of one name": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a"}, {Name: "a"}}},
			reason: addonsv1.DuplicateReleaseReason,
			says:   []string{"spec.addons[1].name"},
		},
		"a readiness check that is no expression": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", Readiness: []addonsv1.ReadinessCheck{
				{APIVersion: "v1", Kind: "Pod", Expression: "self.status.phase =="}}}}},
			reason: addonsv1.InvalidReadinessReason,
			says:   []string{"spec.addons[0].readiness[0].expression"},
		},
		"values that are a list": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", Values: &apiextensionsv1.JSON{Raw: []byte(`["secret"]`)}}}},
			reason: addonsv1.InvalidValuesReason,
			says:   []string{"spec.addons[0].values"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			problems := Validate(&tc.spec)
			if tc.reason == "" {
				if len(problems) > 0 {
					t.Errorf("problems: %v", Errors(problems))
				}
				return
			}
			if len(problems) != 1 || problems[0].Reason != tc.reason {
				t.Fatalf("problems = %v, want one of reason %s", problems, tc.reason)
			}
			for _, part := range tc.says {
				if !strings.Contains(problems[0].Error.Error(), part) {
					t.Errorf("%q doesn't say %q", problems[0].Error, part)
				}
			}
			if strings.Contains(problems[0].Error.Error(), "secret") {
				t.Errorf("%q shows a value", problems[0].Error)
			}
		})
	}
}
