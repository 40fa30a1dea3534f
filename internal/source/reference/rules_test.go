// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
)

// kinds returns the fields of a chart's source that are kinds of sources on other hosts.
func kinds() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[addonsv1.ChartSource]()) {
		if field.Type.Kind() != reflect.Pointer {
			continue
		}
		var chart addonsv1.ChartSource
		reflect.ValueOf(&chart).Elem().FieldByIndex(field.Index).Set(reflect.New(field.Type.Elem()))
		if (reference.Reference{Chart: chart}).Remote() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// The rule that exactly one source is set names each kind of source that a field offers: a kind that it lacks would be refused.
func TestRuleNamesAllKinds(t *testing.T) {
	data, err := os.ReadFile("../../../config/crd/bases/addons.cluster.x-k8s.io_addonstacks.yaml")
	must.Succeed(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Succeed(t, yaml.Unmarshal(data, crd))
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	spec := crd.Spec.Versions[at].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	addon := spec["addons"].Items.Schema.Properties
	all := kinds()
	if len(all) == 0 {
		t.Fatal("no kind of source is known")
	}
	for name, schema := range map[string]apiextensionsv1.JSONSchemaProps{
		"source": spec["source"], "chart": addon["chart"], "kustomization": addon["kustomization"], "manifests": addon["manifests"],
	} {
		want := []string{"path", "configMap", "secret"}
		for _, kind := range all {
			if _, offered := schema.Properties[kind]; offered {
				want = append(want, kind)
			}
		}
		var one string
		for _, rule := range schema.XValidations {
			one += regexp.MustCompile(`\[has[^\]]*\]\.exists_one\(x, x\)`).FindString(rule.Rule)
		}
		var has []string
		for _, match := range regexp.MustCompile(`has\(self\.(\w+)\)`).FindAllStringSubmatch(one, -1) {
			has = append(has, match[1])
		}
		slices.Sort(has)
		slices.Sort(want)
		if !slices.Equal(has, want) {
			t.Errorf("%s: the rule names %v, the field has %v", name, has, want)
		}
	}
}
