// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/controllers"
	"github.com/cluster-chandler/chandler/test/must"
)

// An instance waits until it has the rights in Reads: they have to be those that its
// role gives, else it waits for ever, or collects refusals.
func TestReadsAreInTheRole(t *testing.T) {
	data, err := os.ReadFile("../config/rbac/role.yaml")
	must.Succeed(t, err)
	role := &rbacv1.ClusterRole{}
	must.Succeed(t, yaml.UnmarshalStrict(data, role))
	has := func(group, resource, verb string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
	for _, read := range controllers.Reads {
		if !has(read.Group, read.Resource, "list") || !has(read.Group, read.Resource, "watch") {
			t.Errorf("config/rbac/role.yaml doesn't let an instance list and watch %s", read)
		}
	}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			listed := slices.ContainsFunc(controllers.Reads, func(r schema.GroupResource) bool {
				return r.Resource == resource && slices.Contains(rule.APIGroups, r.Group)
			})
			if slices.Contains(rule.Verbs, "watch") && resource != "*" && !listed {
				t.Errorf("config/rbac/role.yaml lets an instance watch %s, which isn't in Reads", resource)
			}
		}
	}
}
