// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/patch"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
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
		reader := &manifest.Reader{Limits: job.MostMade}
		_, err := reader.Decode("a.yaml", rendering.ConfigMap+text)
		rendering.WantReason(t, err, job.ReasonManifestInvalid, "a.yaml")
	}
}

// Values and patches are read by workers, and cost the manager nothing. So are manifests, which
// the manager decodes again from the release record.
func TestYAMLThatGrows(t *testing.T) {
	long.Test(t)
	r := rendering.NewRenderer(t)
	for name, parse := range map[string]func(text string) error{
		"values": func(text string) error {
			_, err := r.Values(t.Context(), job.Values{Text: []byte(text)})
			return err
		},
		"patch": func(text string) error {
			growing := addonsv1.Patch{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + text}
			if err := patch.Check(&growing, field.NewPath("patches").Index(0)); err != nil {
				return err
			}
			req := rendering.FilesJob("", map[string]string{"a.yaml": rendering.ConfigMap}, growing)
			_, err := r.Files(t.Context(), req)
			return err
		},
		"manifest": func(text string) error {
			reader := &manifest.Reader{Limits: job.MostMade}
			_, err := reader.Decode("templates/a.yaml", rendering.ConfigMap+text)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { yamlbombs.AreRefused(t, parse) })
	}
}

// YAML that grows ends in a worker, and the next one gets on.
func TestFilesThatGrowWhenTheyAreOpened(t *testing.T) {
	long.Test(t)
	r := rendering.NewRenderer(t)
	asJSON := func(text string) ([]byte, error) {
		opened, err := r.Open(t.Context(), &opener.Job{YAML: &opener.YAML{Data: []byte(text)}})
		if err != nil {
			return nil, err
		}
		return opened.JSON, nil
	}
	yamlbombs.AreRefused(t, func(text string) error {
		_, err := asJSON("a: 1\n" + text)
		if failed, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || !failed.OfContent()) {
			t.Errorf("got %v, want an error about the content", err)
		}
		return err
	})
	if got, err := asJSON("a: [1, b]\n"); err != nil || string(got) != `{"a":[1,"b"]}` {
		t.Errorf("got %s, %v", got, err)
	}
}
