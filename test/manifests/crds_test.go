// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"testing"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/cluster-chandler/chandler/test/must"
)

// TestCRDsFitAnAnnotation has `kubectl apply` keep each CRD in an annotation: all annotations of an object have 256 KiB.
func TestCRDsFitAnAnnotation(t *testing.T) {
	const others = 1 << 10
	for _, object := range build(t, shared) {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text, err := json.Marshal(object)
		must.Succeed(t, err)
		if len(text) > apivalidation.TotalAnnotationSizeLimitB-others {
			t.Errorf("CRD %s has %d bytes: docs/instances.md is to say `kubectl apply --server-side`", object.GetName(), len(text))
		}
	}
}
