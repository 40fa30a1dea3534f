// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/instance/skew"
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

const complete = `{"properties": {"metadata": {}, "common": {}, "number": {}, "list": {"items": {"properties": {"text": {}}}}, "names": {"items": {}},
	"strings": {}, "free": {}, "time": {}}}`

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		want   []string
	}{
		"everything is there":         {schema: complete},
		"anything is kept":            {schema: `{"x-kubernetes-preserve-unknown-fields": true}`},
		"nothing is there":            {schema: `{}`, want: []string{".metadata", ".common", ".number", ".list", ".names", ".strings", ".free", ".time"}},
		"a field of a list's element": {schema: `{"properties": {"metadata": {}, "common": {}, "number": {}, "list": {"items": {}}, "names": {}, "strings": {}, "free": {}, "time": {}}}`, want: []string{".list[].text"}},
		"a list that keeps all":       {schema: `{"properties": {"metadata": {}, "common": {}, "number": {}, "list": {"items": {"x-kubernetes-preserve-unknown-fields": true}}, "names": {}, "strings": {}, "free": {}, "time": {}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			served := &skew.Schema{}
			if err := json.Unmarshal([]byte(tc.schema), served); err != nil {
				t.Fatal(err)
			}
			if got := skew.Missing(served, reflect.TypeFor[*known](), ""); !slices.Equal(got, tc.want) {
				t.Errorf("Missing() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		want   []string
	}{
		"all is known":                {schema: complete},
		"less than is known":          {schema: `{"properties": {"apiVersion": {}, "kind": {}}}`},
		"a field more":                {schema: `{"properties": {"wave": {"properties": {"below": {}}}, "number": {}, "Hidden": {}}}`, want: []string{".Hidden", ".wave"}},
		"a field of a list's element": {schema: `{"properties": {"list": {"items": {"properties": {"text": {}, "wave": {}}}}}}`, want: []string{".list[].wave"}},
		"anything below a free field": {schema: `{"properties": {"free": {"properties": {"wave": {}}}, "time": {"properties": {"wave": {}}}, "metadata": {"properties": {"wave": {}}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			served := &skew.Schema{}
			if err := json.Unmarshal([]byte(tc.schema), served); err != nil {
				t.Fatal(err)
			}
			if got := skew.Unknown(served, reflect.TypeFor[*known](), ""); !slices.Equal(got, tc.want) {
				t.Errorf("Unknown() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGapSaysWhatToDo(t *testing.T) {
	version := metav1.SchemeGroupVersion
	for want, gap := range map[string]skew.Gap{
		"": {Version: version},
		"The API server doesn't serve A, B of meta.k8s.io/v1. Upgrade config/shared first, which holds the CRDs":             {Version: version, Kinds: []string{"A", "B"}, Fields: []string{"C.d"}},
		"The CRDs of meta.k8s.io/v1 don't have A.b, A.c, A.d. Upgrade config/shared first, which holds the CRDs":             {Version: version, Fields: []string{"A.b", "A.c", "A.d"}},
		"The CRDs of meta.k8s.io/v1 don't have A.b, A.c, A.d, and 2 more. Upgrade config/shared first, which holds the CRDs": {Version: version, Fields: []string{"A.b", "A.c", "A.d", "A.e", "A.f"}},
	} {
		if got := gap.String(); got != want || gap.Empty() != (want == "") {
			t.Errorf("Gap.String() = %q, want %q", got, want)
		}
	}
}
