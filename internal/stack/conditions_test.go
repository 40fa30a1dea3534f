// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

func TestConditionsAreCompiled(t *testing.T) {
	object := []addonsv1.ConditionObject{{Key: "node", APIVersion: "v1", Kind: "Node", Name: "a"}}
	for expression, says := range map[string]string{
		"node.spec.unschedulable == false": "",
		"node.":                            "Syntax error",
		"other.spec.x == 1":                "undeclared reference to 'other'",
		"1 + 1":                            "not bool",
	} {
		for field, addon := range map[string]addonsv1.Addon{
			"preconditions":  {Name: "a", Preconditions: []addonsv1.ObjectsCondition{{Objects: object, Expression: expression}}},
			"postconditions": {Name: "a", Postconditions: []addonsv1.ObjectsCondition{{Objects: object, Expression: expression}}},
		} {
			problems := stack.Validate(&addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{addon}})
			switch {
			case says == "" && len(problems) > 0:
				t.Errorf("%s %q: %v", field, expression, problems)
			case says != "" && (len(problems) != 1 || problems[0].Reason != addonsv1.InvalidExpressionReason ||
				problems[0].Error.Field != "spec.addons[0]."+field+"[0].expression" || !strings.Contains(problems[0].Error.Detail, says)):
				t.Errorf("%s %q: %v", field, expression, problems)
			}
		}
	}
}

func TestObjectsOfConditionsCanBeRead(t *testing.T) {
	for field, object := range map[string]addonsv1.ConditionObject{
		"apiVersion": {Key: "a", APIVersion: "apps/v1/x", Kind: "Deployment", Name: "a"},
		"name":       {Key: "a", APIVersion: "v1", Kind: "Node", Name: ".."},
		"namespace":  {Key: "a", APIVersion: "v1", Kind: "ConfigMap", Name: "a", Namespace: "a/b"},
	} {
		addon := addonsv1.Addon{Name: "a", Preconditions: []addonsv1.ObjectsCondition{{Objects: []addonsv1.ConditionObject{object}, Expression: "true"}}}
		problems := stack.Validate(&addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{addon}})
		if len(problems) != 1 || problems[0].Reason != addonsv1.InvalidExpressionReason ||
			problems[0].Error.Field != "spec.addons[0].preconditions[0].objects[0]."+field {
			t.Errorf("%s: %v", field, problems)
		}
	}
}
