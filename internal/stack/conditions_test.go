// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/cost"
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

// withConditions returns a spec with as many conditions as one may have, or fewer, of one form and all different.
func withConditions(times int, form func(int) string) *addonsv1.AddonStackSpec {
	spec := &addonsv1.AddonStackSpec{}
	for i := range times {
		if i%8 == 0 {
			spec.Addons = append(spec.Addons, addonsv1.Addon{Name: fmt.Sprint("a", i), Chart: addonsv1.ChartSource{Path: "a.tgz"}})
		}
		addon := &spec.Addons[len(spec.Addons)-1]
		addon.Preconditions = append(addon.Preconditions, addonsv1.ObjectsCondition{
			Objects:    []addonsv1.ConditionObject{{Key: "a", APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "a"}},
			Expression: form(i),
		})
	}
	return spec
}

// TestExpressionsOfOneStackTakeLittleTime asserts the CPU time of the process, which other processes don't use up.
func TestExpressionsOfOneStackTakeLittleTime(t *testing.T) {
	const most = 500 * time.Millisecond
	for name, c := range map[string]struct {
		times   int
		form    func(int) string
		refused bool
	}{
		"indexes in indexes": {512, func(i int) string { return fmt.Sprint("a", strings.Repeat("[a]", 240), " == ", i) }, true},
		"as many as may be":  {250, func(i int) string { return fmt.Sprint("a.x.y == ", i, " && a.x") }, false},
		"macros in macros":   {8, func(i int) string { return strings.Repeat("a.map(x,a.map(y,x[y]))==a&&", 9) + fmt.Sprint("a == ", i) }, false},
		"too many macros":    {64, func(i int) string { return strings.Repeat("a.map(x,a.map(y,x[y]))==a&&", 11) + fmt.Sprint("a == ", i) }, true},
		"short macros":       {90, func(i int) string { return fmt.Sprint("a.map(x,a.map(y,x)).size() == ", i) }, false},
		"indexes": {8, func(i int) string {
			return strings.Repeat("a"+strings.Repeat("[a]", 29)+"&&", 4) + fmt.Sprint("a == ", i)
		}, false},
		"lists in lists": {8, func(i int) string {
			return strings.Repeat(strings.Repeat("[", 28)+strings.Repeat("]", 28)+"==a&&", 6) + fmt.Sprint("a == ", i)
		}, false},
		"maps in maps": {8, func(i int) string {
			return strings.Repeat(strings.Repeat("{1:", 28)+"1"+strings.Repeat("}", 28)+"==a&&", 3) + fmt.Sprint("a == ", i)
		}, false},
		"optional values": {30, func(i int) string {
			return strings.Repeat("optional.of(a).optMap(x,x).hasValue()&&", 4) + fmt.Sprint("a == ", i)
		}, false},
		"calls in calls": {8, func(i int) string {
			return strings.Repeat("size("+strings.Repeat("dyn(", 24)+"a"+strings.Repeat(")", 24)+")>0&&", 4) + fmt.Sprint("a == ", i)
		}, false},
		"what isn't CEL":      {64, func(i int) string { return fmt.Sprint(i, strings.Repeat("(", 60)) }, false},
		"much that isn't CEL": {256, func(i int) string { return fmt.Sprint(i, strings.Repeat("(", 4000)) }, true},
		"long names":          {16, func(i int) string { return strings.Repeat("a", 4000) + fmt.Sprint(i) }, false},
		"many patterns": {8, func(i int) string {
			return strings.Repeat(`"a".matches("\\pL{200}")&&`, 20) + fmt.Sprint("a == ", i)
		}, false},
		"patterns that repeat": {31, func(i int) string { return fmt.Sprintf(`"%d".matches("%s")`, i, strings.Repeat(`\\pL{1000}`, 20)) }, false},
	} {
		var problems []stack.Problem
		spent := cost.OfAll(func() { problems = stack.Validate(withConditions(c.times, c.form)) })
		spent.Expect(t, most, 64<<20)
		refused := len(problems) == 1 && problems[0].Reason == addonsv1.InvalidExpressionReason && problems[0].Error.Field == "spec.addons"
		if refused != c.refused {
			t.Errorf("%s: refused as a whole: %t, want %t; %d problems", name, refused, c.refused, len(problems))
		}
		t.Logf("%s: %s of CPU, %d MiB, %d problems", name, spent.Work, spent.Allocated>>20, len(problems))
	}
}
