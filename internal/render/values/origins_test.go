// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/test/must"
)

type tree = map[string]any

// TestOriginsOf has values of three layers over a chart's defaults.
func TestOriginsOf(t *testing.T) {
	chart := values.Layer{From: "chart", Values: tree{"image": tree{"repository": "r", "tag": "1"}, "resources": tree{"cpu": 1.0, "memory": 2.0}, "off": tree{"a": 1.0}}}
	secret, written, template := values.Layer{From: "Secret"}, values.Layer{From: "values"}, values.Layer{From: "template"}
	hidden := func(l values.Layer) values.Layer { l.Problem = errors.New("forbidden"); return l }
	with := func(l values.Layer, is tree) values.Layer { l.Values = is; return l }
	from := func(is ...string) []string { return append([]string{}, is...) }
	for name, tc := range map[string]struct {
		layers []values.Layer
		given  tree // nil: what the layers are now
		want   []values.Origin
	}{
		"the chart's alone": {nil, nil, []values.Origin{
			{"image", chart.Values["image"], from("chart"), false}, {"off", chart.Values["off"], from("chart"), false}, {"resources", chart.Values["resources"], from("chart"), false},
		}},
		"the last one wins, and the rest stays": {
			[]values.Layer{with(secret, tree{"image": tree{"tag": "2"}, "a.b": tree{"c": tree{}}}), with(written, tree{"image": tree{"tag": "3"}, "off": nil}), with(template, tree{"list": []any{1.0}})}, nil,
			[]values.Origin{
				{`["a.b"]`, tree{"c": tree{}}, from("Secret"), false}, {"image.repository", "r", from("chart"), false}, {"image.tag", "3", from("values"), false},
				{"list", []any{1.0}, from("template"), false}, {"off", nil, from("values"), false}, {"resources", chart.Values["resources"], from("chart"), false},
			},
		},
		"a layer of all but one": {
			[]values.Layer{with(written, tree{"image": tree{"repository": "x", "tag": "x"}, "resources": "x", "off": tree{"a": 1.0}})}, nil,
			[]values.Origin{{"image", tree{"repository": "x", "tag": "x"}, from("values"), false}, {"off", tree{"a": 1.0}, from("values"), false}, {"resources", "x", from("values"), false}},
		},
		"one that can't be read may win over those below it alone": {
			[]values.Layer{with(secret, tree{"a": 1.0, "b": 1.0}), hidden(written), with(template, tree{"c": 1.0})}, tree{"a": 1.0, "b": 2.0, "c": 1.0, "d": 1.0, "image": tree{"tag": "9"}},
			[]values.Origin{
				{"a", 1.0, from("Secret", "values"), false}, {"b", 2.0, from("Secret", "values"), false}, {"c", 1.0, from("template"), false}, {"d", 1.0, from("values"), false},
				{"image.repository", "r", from("chart"), false}, {"image.tag", "9", from("values"), false}, {"off", chart.Values["off"], from("chart"), false}, {"resources", chart.Values["resources"], from("chart"), false},
			},
		},
		"a key with a zero byte, which isn't found again": {[]values.Layer{with(written, tree{"\x00": tree{"a": 1.0}, "image": 1.0, "off": 1.0, "resources": 1.0})}, nil, []values.Origin{
			{`["\x00"]`, tree{"a": 1.0}, from(), true}, {"image", 1.0, from("values"), false}, {"off", 1.0, from("values"), false}, {"resources", 1.0, from("values"), false},
		}},
		"what changed since in a map that a later layer has, too": {
			[]values.Layer{with(secret, tree{"image": tree{"tag": "2"}}), with(written, tree{"image": tree{"repository": "x"}, "off": nil, "resources": nil})},
			tree{"image": tree{"tag": "1", "repository": "x"}, "off": nil, "resources": nil},
			[]values.Origin{
				{"image.repository", "x", from("values"), false}, {"image.tag", "1", from("Secret"), true}, {"off", nil, from("values"), false}, {"resources", nil, from("values"), false},
			},
		},
		"what changed since": {
			[]values.Layer{with(written, tree{"image": "x", "resources": tree{"cpu": 2.0, "memory": 2.0}})}, tree{"resources": tree{"cpu": int64(2), "memory": 3.0}, "image": tree{"tag": "4"}, "gone": 1.0},
			[]values.Origin{
				{"gone", 1.0, from(), true}, {"image.repository", "r", from("chart"), false}, {"image.tag", "4", from(), true}, {"off", chart.Values["off"], from("chart"), false},
				{"resources.cpu", int64(2), from("values"), false}, {"resources.memory", 3.0, from("values"), true},
			},
		},
	} {
		given := tc.given
		for _, l := range tc.layers {
			if tc.given == nil {
				given = values.Merge(given, l.Values)
			}
		}
		if diff := cmp.Diff(tc.want, values.OriginsOf(chart, given, tc.layers)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestOriginsOfAnyLayers merges random layers: each part is in its layer as it is, and in none that wins over it.
func TestOriginsOfAnyLayers(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var layers []values.Layer
		given := tree{}
		for i := range 4 {
			layers = append(layers, values.Layer{From: fmt.Sprint(i), Values: randomValues(r, 3)})
			given = values.Merge(given, layers[i].Values)
		}
		for _, is := range values.OriginsOf(layers[0], given, layers) {
			if is.Changed || len(is.From) != 1 {
				t.Fatalf("seed %d: %+v", seed, is)
			}
			at, err := strconv.Atoi(is.From[0])
			must.Succeed(t, err)
			for i := range layers {
				there, found, _ := unstructured.NestedFieldNoCopy(layers[i].Values, strings.Split(is.Path, ".")...)
				if _, isMap := is.Value.(tree); !isMap && (i > at && found || i == at && !cmp.Equal(there, is.Value)) {
					t.Fatalf("seed %d: layer %d has %v (%t): %+v", seed, i, there, found, is)
				}
			}
		}
	}
}
