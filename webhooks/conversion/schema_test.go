// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestRulesOfFields compares each field of v1alpha1 with its field in v1beta1. The API server asks the rules of the version
// that is written, so any difference would be a way around v1beta1's.
func TestRulesOfFields(t *testing.T) {
	older, newer := schemaOf(t, addonsv1alpha1.GroupVersion.Version), schemaOf(t, addonsv1.GroupVersion.Version)
	fields := map[string]string{"bundle": "source", "removals.limit": "removalLimit", "removals.allowed": "allowedRemovals"}
	compare := func(name string, field apiextensionsv1.JSONSchemaProps) {
		other, ok := newer.Properties["spec"].Properties[fields[name]]
		if fields[name] == "" {
			other, ok = newer.Properties["spec"].Properties[name]
		}
		if diff := cmp.Diff(rulesOf(t, other), rulesOf(t, field)); !ok || diff != "" {
			t.Errorf("spec.%s has other rules (-v1beta1 +v1alpha1):\n%s", name, diff)
		}
	}
	for name, field := range older.Properties["spec"].Properties {
		if name != "removals" {
			compare(name, field)
			continue
		}
		for part, field := range field.Properties {
			compare(name+"."+part, field)
		}
	}
	if diff := cmp.Diff(rulesOf(t, newer.Properties["status"]), rulesOf(t, older.Properties["status"])); diff != "" {
		t.Errorf("status has other rules (-v1beta1 +v1alpha1):\n%s", diff)
	}
	if diff := cmp.Diff(newer.XValidations, older.XValidations); diff != "" {
		t.Errorf("the object has other rules (-v1beta1 +v1alpha1):\n%s", diff)
	}
}

// TestRulesSayWhatIsWrong compares rules that say one of several things with what they say: a rule is that this is nothing.
func TestRulesSayWhatIsWrong(t *testing.T) {
	n := 0
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range schema.XValidations {
			if rule.MessageExpression == "" {
				continue
			}
			n++
			if !strings.HasSuffix(rule.Rule, "("+rule.MessageExpression+`) == ""`) {
				t.Errorf("%s: the rule isn't that its messageExpression says nothing: %s", path, rule.Rule)
			}
		}
		for name, field := range schema.Properties {
			walk(path+"."+name, &field)
		}
		if schema.Items != nil {
			walk(path+"[]", schema.Items.Schema)
		}
	}
	schema := schemaOf(t, addonsv1.GroupVersion.Version)
	if walk("", &schema); n == 0 {
		t.Error("no rule has a messageExpression")
	}
}

func schemaOf(t *testing.T, version string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	schema, err := docs.Schema("../..", "addonstacks", version)
	must.Succeed(t, err)
	return schema
}

// description is a line of a schema that describes a field, which v1alpha1 leaves out.
var description = regexp.MustCompile(`(?m)^ *"description": ".*",?\n`)

// rulesOf returns all that a schema says but for descriptions, and for what messages call the field.
func rulesOf(t *testing.T, schema apiextensionsv1.JSONSchemaProps) string {
	t.Helper()
	text, err := json.MarshalIndent(schema, "", " ")
	must.Succeed(t, err)
	return strings.ReplaceAll(description.ReplaceAllString(string(text), ""), `"message": "removalLimit is`, `"message": "limit is`)
}
