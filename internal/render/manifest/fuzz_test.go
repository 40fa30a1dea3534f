// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func FuzzManifests(f *testing.F) {
	for _, seed := range []string{"", rendering.ConfigMap, "---\n" + rendering.ConfigMap + "---\n" + rendering.ConfigMap, "---apiVersion: v1", "--- \n# c\n---", "a: |\n  ---\n", "kind: List\nitems: [{}]", "items: [1]\nkind: List", "metadata: {annotations: {helm.sh/hook: test}}", "kind: RoleList\napiVersion: v1\nitems: [{metadata: {name: a}}]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		reader := &manifest.Reader{Limits: job.MostMade}
		result := &job.Result{}
		var documents []manifest.Document
		for _, part := range manifest.SplitManifests(text) {
			document, err := reader.Decode("a/templates/a.yaml", part)
			if err != nil {
				return
			}
			documents = append(documents, document)
		}
		documents, _, err := manifest.SplitHooks(documents)
		if err != nil || reader.CollectInto(result, documents) != nil {
			return
		}
		for _, object := range result.Objects {
			if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("incomplete object %v", object)
			}
		}
	})
}
