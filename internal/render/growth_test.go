// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

// Values and patches are read by workers, and cost the manager nothing. So are manifests, which
// the manager decodes again from the release record.
func TestYAMLThatGrows(t *testing.T) {
	r := newRenderer(t)
	for name, parse := range map[string]func(text string) error{
		"values": func(text string) error {
			_, err := r.Values(t.Context(), ValuesRequest{Text: []byte(text)})
			return err
		},
		"patch": func(text string) error {
			patch := addonsv1.Patch{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + text}
			if err := CheckPatch(&patch, field.NewPath("patches").Index(0)); err != nil {
				return err
			}
			req := filesRequest("", map[string]string{"a.yaml": configMap}, patch)
			_, err := r.Manifests(t.Context(), req)
			return err
		},
		"manifest": func(text string) error {
			reader := &manifestReader{limits: defaultLimits}
			_, err := reader.decode("templates/a.yaml", configMap+text)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { yamlbombs.AreRefused(t, parse) })
	}
}
