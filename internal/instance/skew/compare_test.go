// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/skew"
	"github.com/cluster-chandler/chandler/test/must"
)

type inner struct {
	Text string `json:"text"`
}

type embedded struct {
	Common string `json:"common"`
}

type known struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	embedded          `json:",inline"`
	Number            *int                  `json:"number,omitempty"`
	List              []inner               `json:"list,omitempty"`
	Names             []string              `json:"names,omitempty"`
	Strings           map[string]string     `json:"strings,omitempty"`
	Free              *apiextensionsv1.JSON `json:"free,omitempty"`
	Time              metav1.Time           `json:"time,omitempty,omitzero"`
	Hidden            string                `json:"-"`
	private           string                //nolint:unused // the comparison is to leave it out
}

const complete = `{"properties": {"apiVersion": {}, "kind": {}, "metadata": {}, "common": {}, "number": {}, "list": {"items": {"properties": {"text": {}}}}, "names": {"items": {}},
	"strings": {}, "free": {}, "time": {}}}`

func TestCompare(t *testing.T) {
	all := []string{".kind", ".apiVersion", ".metadata", ".common", ".number", ".list", ".names", ".strings", ".free", ".time"}
	for name, tc := range map[string]struct {
		schema           string
		missing, unknown []string
	}{
		"everything is there":               {schema: complete},
		"anything is kept":                  {schema: `{"x-kubernetes-preserve-unknown-fields": true}`},
		"nothing is there":                  {schema: `{}`, missing: all},
		"a field of a list's element less":  {schema: strings.Replace(complete, `{"text": {}}`, `{}`, 1), missing: []string{".list[].text"}},
		"a list that keeps all":             {schema: strings.Replace(complete, `"properties": {"text": {}}`, `"x-kubernetes-preserve-unknown-fields": true`, 1)},
		"the kind":                          {schema: `{"properties": {"apiVersion": {}, "kind": {}}}`, missing: all[2:]},
		"a field more":                      {schema: with(`"wave": {"properties": {"below": {}}}, "Hidden": {}`), unknown: []string{".Hidden", ".wave"}},
		"a field of a list's element more":  {schema: strings.Replace(complete, `"text": {}`, `"text": {}, "wave": {}`, 1), unknown: []string{".list[].wave"}},
		"anything below a free field":       {schema: with(`"free": {"properties": {"wave": {}}}`)},
		"anything below a time":             {schema: with(`"time": {"properties": {"wave": {}}}`)},
		"anything below the usual metadata": {schema: with(`"metadata": {"properties": {"wave": {}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			served, gap := &skew.Schema{}, &skew.Gap{}
			must.Succeed(t, json.Unmarshal([]byte(tc.schema), served))
			if gap.Compare(served, reflect.TypeFor[*known](), ""); !slices.Equal(gap.Fields, tc.missing) || !slices.Equal(gap.Unknown, tc.unknown) {
				t.Errorf("Compare() = %q, %q, want %q, %q", gap.Fields, gap.Unknown, tc.missing, tc.unknown)
			}
		})
	}
}

// TestOnlyWritten has a status that the CRDs of another release lack a part of.
func TestOnlyWritten(t *testing.T) {
	crd, err := os.ReadFile("../../../config/crd/bases/addons.cluster.x-k8s.io_providerinstances.yaml")
	must.Succeed(t, err)
	for field, missing := range map[string]bool{"scope": false, "clusters": false, "sandbox": false, "unmanagedClusters": false, "grant": true, "heartbeatTime": true} {
		var is struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema *skew.Schema }
				}
			}
		}
		must.Succeed(t, yaml.Unmarshal(crd, &is))
		schema, gap := is.Spec.Versions[0].Schema.OpenAPIV3Schema, &skew.Gap{}
		if schema.Properties["status"].Properties[field] == nil {
			t.Fatalf("there is no status.%s", field)
		}
		delete(schema.Properties["status"].Properties, field)
		gap.Compare(schema, reflect.TypeFor[addonsv1.ProviderInstance](), "ProviderInstance")
		if slices.Contains(gap.Fields, "ProviderInstance.status."+field) != missing || len(gap.Fields) > 1 {
			t.Errorf("without status.%s, these are missing: %v", field, gap.Fields)
		}
	}
}

// with is the complete schema with other properties. The last of a name counts.
func with(properties string) string {
	return strings.TrimSuffix(complete, "}}") + ", " + properties + "}}"
}

func TestGapSaysWhatToDo(t *testing.T) {
	version := metav1.SchemeGroupVersion
	for want, gap := range map[string]skew.Gap{
		"": {Version: version},
		"The API server doesn't serve A, B of meta.k8s.io/v1. Upgrade config/shared first, which holds the CRDs":                               {Version: version, Kinds: []string{"A", "B"}, Fields: []string{"C.d"}},
		"The CRDs of meta.k8s.io/v1 don't have A.b, A.c, A.d. Upgrade config/shared first, which holds the CRDs":                               {Version: version, Fields: []string{"A.b", "A.c", "A.d"}},
		"The CRDs of meta.k8s.io/v1 don't have A.b, A.c, A.d, and 2 more. Upgrade config/shared first, which holds the CRDs":                   {Version: version, Fields: []string{"A.b", "A.c", "A.d", "A.e", "A.f"}},
		"The CRDs of meta.k8s.io/v1 are newer than this instance: they don't have A.b any more, and it doesn't know A.c. Upgrade the instance": {Version: version, Fields: []string{"A.b"}, Unknown: []string{"A.c"}},
	} {
		if got := gap.String(); got != want || gap.Empty() != (want == "") {
			t.Errorf("Gap.String() = %q, want %q", got, want)
		}
	}
}
