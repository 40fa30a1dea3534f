// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

// What is decoded in the manager itself, and what workers decode of manifests, which the manager
// decodes again from the release record.
func TestYAMLThatGrows(t *testing.T) {
	for name, parse := range map[string]func(text string) error{
		"values": func(text string) error {
			_, err := ParseValues([]byte(text))
			return err
		},
		"patch": func(text string) error {
			patch := &addonsv1.Patch{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + text}
			if err := CheckPatch(patch, field.NewPath("patches").Index(0)); err != nil {
				return err
			}
			return nil
		},
		"manifest": func(text string) error {
			reader := &manifestReader{limits: Options{}.withDefaults().limits()}
			_, err := reader.decode("templates/a.yaml", configMap+text)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { yamlbombs.AreRefused(t, parse) })
	}
}
