// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// A rollout of a tag that is moved brings other content to later waves. Versions, ranges and digests don't move.
func TestWarnings(t *testing.T) {
	s := followingStack()
	if got := stack.Warnings(&s.Spec); len(got) > 0 {
		t.Errorf("without a rollout: %v", got)
	}
	s.Spec.Rollout = &addonsv1.Rollout{}
	got := stack.Warnings(&s.Spec)
	if len(got) != 1 || !strings.HasPrefix(got[0], "spec.addons[") || !strings.Contains(got[0], `manifests.version: "latest"`) {
		t.Errorf("got %q", got)
	}
	s.Spec.Addons[len(s.Spec.Addons)-1].Manifests.OCI.Digest = "sha256:" + strings.Repeat("a", 64)
	if got := stack.Warnings(&s.Spec); len(got) > 0 {
		t.Errorf("with a digest: %v", got)
	}
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}, Version: "stable"}}
	if got := stack.Warnings(&s.Spec); len(got) != 1 || !strings.HasPrefix(got[0], "spec.source.version") {
		t.Errorf("got %q", got)
	}
}
