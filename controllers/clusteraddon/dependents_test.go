// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestMayBringKinds(t *testing.T) {
	of := func(stack, name string, dependsOn ...string) addon {
		return addon{stack: stack, Addon: addonsv1.Addon{Name: name, DependsOn: dependsOn}}
	}
	for name, tc := range map[string]struct {
		before, after string
		others        []addon
		want          bool
	}{
		"nobody asks":                     {after: "apps/v1/Deployment,v1/Service"},
		"it brings a CRD":                 {after: "apiextensions.k8s.io/v1/CustomResourceDefinition,v1/Service", want: true},
		"it has no CRD any more":          {before: "apiextensions.k8s.io/v1/CustomResourceDefinition", after: "v1/Service", want: true},
		"it brings an API server":         {after: "apiregistration.k8s.io/v1/APIService", want: true},
		"another one depends on it":       {others: []addon{of("platform", "dashboards", "operator")}, want: true},
		"one of another stack does":       {others: []addon{of("team", "dashboards", "platform/operator")}, want: true},
		"one depends on another stack's":  {others: []addon{of("team", "dashboards", "operator")}},
		"it depends on another one":       {others: []addon{of("platform", "operator", "dashboards")}},
		"a kind is called almost like it": {after: "example.org/v1/MyCustomResourceDefinition"},
	} {
		t.Run(name, func(t *testing.T) {
			a := of("platform", "operator")
			q := &clusterRun{stacks: stacks{wanted: append(tc.others, a)}}
			if got := (rendering{q}).mayBringKinds(&a, tc.before, tc.after); got != tc.want {
				t.Errorf("mayBringKinds() = %t", got)
			}
		})
	}
}
