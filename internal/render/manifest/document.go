// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Document is one YAML document of a template's output.
type Document struct {
	Path   string
	text   string
	Object *unstructured.Unstructured // nil if it holds nothing but comments
}

func (d Document) kind() string {
	if d.Object == nil {
		return ""
	}
	return d.Object.GetKind()
}

// SplitManifests splits a template's output into its documents, without the empty ones.
func SplitManifests(content string) []string {
	split := releaseutil.SplitManifests(content)
	docs := make([]string, 0, len(split))
	for i := range len(split) {
		docs = append(docs, split[fmt.Sprintf("manifest-%d", i)])
	}
	return docs
}

// manifestText is the manifest as Helm records it.
func manifestText(docs []Document) string {
	var b strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", d.Path, d.text)
	}
	return b.String()
}
