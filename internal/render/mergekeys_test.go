// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// merging overrides a key of what it merges, which is what merge keys are for.
const merging = "base: &base {a: x, b: w}\nover:\n  <<: *base\n  a: z\n"

var merged = map[string]any{"base": map[string]any{"a": "x", "b": "w"}, "over": map[string]any{"a": "z", "b": "w"}}

func TestMergeKeysMayBeOverridden(t *testing.T) {
	object := rendering.ConfigMap + "data:\n  inner: &base {a: x, b: w}\n  over:\n    <<: *base\n    a: z\n"
	want := map[string]any{"inner": merged["base"], "over": merged["over"]}
	chart := rendering.ChartJob(rendering.ChartWith(object))
	files := []artifact.File{{Name: "a.yaml", Data: []byte(object)}}
	kustomized := append([]artifact.File{{Name: "kustomization.yaml", Data: []byte("resources: [a.yaml]\n")}}, files...)
	r := rendering.NewRenderer(t)
	for name, render := range map[string]func() (*job.Result, error){
		"a chart": func() (*job.Result, error) { return r.Chart(t.Context(), chart) },
		"manifests": func() (*job.Result, error) {
			return r.Files(t.Context(), job.Files{Files: files, Release: chart.Release})
		},
		"a kustomization": func() (*job.Result, error) {
			return r.Files(t.Context(), job.Files{Kustomization: true, Files: kustomized, Release: chart.Release})
		},
		"a patch": func() (*job.Result, error) {
			req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))
			req.Patches = []addonsv1.Patch{{Patch: object}}
			return r.Chart(t.Context(), req)
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := render()
			must.Succeed(t, err)
			data, _, _ := unstructured.NestedMap(result.Objects[0].Object, "data")
			must.Equal(t, want, data)
		})
	}
	for _, lenient := range []bool{false, true} {
		values, err := r.Values(t.Context(), job.Values{Text: []byte(merging), Lenient: lenient})
		if diff := cmp.Diff(merged, values); err != nil || diff != "" {
			t.Errorf("values parsed leniently (%t): %v %s", lenient, err, diff)
		}
	}
}

func TestKeysThatAreTwiceAreRefusedBesideMergeKeys(t *testing.T) {
	r := rendering.NewRenderer(t)
	for _, text := range []string{merging + "base: x\n", "m: &m {a: 1}\nn: {<<: *m, b: 1, b: 2}\n", "a: 1\n\"a\": 2\n", "a: {<<: {b: 1}, <<: {b: 2}, c: 1, c: 2}\n", "1: a\n1: b\n"} {
		if _, err := r.Values(t.Context(), job.Values{Text: []byte(text)}); err == nil {
			t.Errorf("%q is read", text)
		}
		reader := &manifest.Reader{Limits: rendering.Limits}
		_, err := reader.Decode("a.yaml", rendering.ConfigMap+text)
		rendering.WantReason(t, err, job.ReasonManifestInvalid, "a.yaml")
	}
}
