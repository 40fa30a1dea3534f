// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

const root = "../.."

// place is where a page documents the fields below some others.
type place struct {
	page, heading string
	// fields is the path of those that the section is about. Names in its tables start
	// behind it.
	fields *regexp.Regexp
}

const stackPage, addonPage = "docs/reference/addonstack.md", "docs/reference/addon.md"

// stackPlaces are those of AddonStacks. Where sections share fields, as chart and spec.source do, any of them may have the row.
var stackPlaces = []place{
	{stackPage, "# AddonStack", regexp.MustCompile(`^`)},
	{stackPage, "## spec.source", regexp.MustCompile(`^spec\.source\.`)},
	{addonPage, "## spec.addons[]", regexp.MustCompile(`^spec\.addons\[\]\.`)},
	{addonPage, "## Where content comes from", regexp.MustCompile(`^spec\.(source|addons\[\]\.(chart|kustomization|manifests))\.`)},
	{addonPage, "## Signatures", regexp.MustCompile(`^spec\.(source|addons\[\]\.(chart|kustomization|manifests))\.verify\.`)},
	{stackPage, "## Drift", regexp.MustCompile(`^spec\.(addons\[\]\.)?drift\.`)},
	{addonPage, "## Patches", regexp.MustCompile(`^spec\.addons\[\]\.`)},
	{stackPage, "## Status", regexp.MustCompile(`^status\.`)},
}

// postconditions are documented as preconditions: they have the same fields.
var postconditions = strings.NewReplacer("postconditions[].", "preconditions[].")

// TestStackFields compares the tables of both pages with the CRD.
func TestStackFields(t *testing.T) {
	schema, err := Schema(root, "addonstacks", addonsv1.GroupVersion.Version)
	must.Succeed(t, err)
	compareFields(t, stackPlaces, schema)
}

// TestInstanceAndClusterFields does the same for the objects that people only read.
func TestInstanceAndClusterFields(t *testing.T) {
	const instance, cluster, plan = "docs/reference/providerinstance.md", "docs/reference/clusteraddon.md", "docs/reference/addonplan.md"
	for plural, places := range map[string][]place{
		"providerinstances": {{instance, "# ProviderInstance", regexp.MustCompile(`^`)}},
		"addonplans":        {{plan, "# AddonPlan", regexp.MustCompile(`^`)}},
		"clusteraddons": {
			{cluster, "# ClusterAddon", regexp.MustCompile(`^`)}, {cluster, "## status.addons[]", regexp.MustCompile(`^status\.addons\[\]\.`)},
			{cluster, "## status.history[]", regexp.MustCompile(`^status\.history\[\]\.`)},
		},
	} {
		schema, err := Schema(root, plural, addonsv1.GroupVersion.Version)
		must.Succeed(t, err)
		compareFields(t, places, schema)
	}
}

// compareFields wants a row for each field that has no fields itself, and a field for each row.
func compareFields(t *testing.T, places []place, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	fields := map[string]bool{} // whether it has none itself
	for _, part := range []string{"spec", "status"} {
		fieldsBelow(part, schema.Properties[part], fields)
	}
	rows := map[string]map[string]bool{} // names by heading, and whether there is a field of that name
	for _, at := range places {
		rows[at.heading] = map[string]bool{}
		for _, row := range mustSection(t, at.page, at.heading).Rows("field") {
			for _, name := range names(row.Code(0)) {
				rows[at.heading][name] = false
			}
		}
	}
	for field, leaf := range fields {
		var found bool
		for _, at := range places {
			if name := postconditions.Replace(at.fields.ReplaceAllString(field, "")); at.fields.MatchString(field) {
				if _, documented := rows[at.heading][name]; documented {
					rows[at.heading][name], found = true, true
				}
			}
		}
		if leaf && !found {
			t.Errorf("%s doesn't have %s", places[0].page, field)
		}
	}
	for heading, documented := range rows {
		for name, exists := range documented {
			if !exists {
				t.Errorf("%q: there is no field %s", heading, name)
			}
		}
	}
}

// fieldsBelow collects the paths of all fields, as "spec.addons[].name".
func fieldsBelow(path string, schema apiextensionsv1.JSONSchemaProps, fields map[string]bool) {
	if schema.Items != nil && schema.Items.Schema != nil && len(schema.Items.Schema.Properties) > 0 {
		fields[path] = false
		path, schema = path+"[]", *schema.Items.Schema
	}
	_, isSelector := schema.Properties["matchLabels"]
	_, isCondition := schema.Properties["lastTransitionTime"]
	if isSelector || isCondition { // Kubernetes' own types
		path, schema = strings.TrimSuffix(path, "[]"), apiextensionsv1.JSONSchemaProps{}
	}
	fields[path] = len(schema.Properties) == 0
	for name, property := range schema.Properties {
		fieldsBelow(fmt.Sprintf("%s.%s", path, name), property, fields)
	}
}

// names completes names: one that starts with a dot stands beside the one before it.
func names(code []string) []string {
	var complete []string
	for _, name := range code {
		if rest, beside := strings.CutPrefix(name, "."); beside && len(complete) > 0 {
			before := complete[len(complete)-1]
			name = before[:strings.LastIndex(before, ".")+1] + rest
		}
		complete = append(complete, name)
	}
	return complete
}

// No field of spec has a default. An older instance beside a newer CRD would meet it in each AddonStack, as a field that it
// doesn't know, and refuse them all.
func TestSpecHasNoDefaults(t *testing.T) {
	schema, err := Schema(root, "addonstacks", addonsv1.GroupVersion.Version)
	must.Succeed(t, err)
	var look func(path string, s apiextensionsv1.JSONSchemaProps)
	look = func(path string, s apiextensionsv1.JSONSchemaProps) {
		if s.Default != nil {
			t.Errorf("%s has a default", path)
		}
		if s.Items != nil {
			look(path+"[]", *s.Items.Schema)
		}
		for name, property := range s.Properties {
			look(path+"."+name, property)
		}
	}
	look("spec", schema.Properties["spec"])
}
