// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/patch"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/rendering"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

// Values and patches are read by workers, and cost the manager nothing. So are manifests, which
// the manager decodes again from the release record.
func TestYAMLThatGrows(t *testing.T) {
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
			reader := &manifest.Reader{Limits: rendering.Limits}
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
