// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"slices"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Facts about the cluster change without anybody asking for another add-on: kinds come and go, and Kubernetes gets newer. The
// chart is rendered again then, and makes a revision if the objects or the hooks differ.

// isAs reports whether a revision has the objects and hooks of the deployed one, but for annotations of pods.
func (made *Made) isAs(deployed *record.Record) bool {
	return made.Record.State.CRDsDigest == deployed.State.CRDsDigest &&
		slices.EqualFunc(made.Previous, made.Objects, equalButPodAnnotations) &&
		slices.EqualFunc(deployed.Helm.Hooks, made.Record.Helm.Hooks, func(was, is *helmrelease.Hook) bool {
			before, err := record.ParseManifest(was.Manifest) // it has events, weights and policies, too
			after, failed := record.ParseManifest(is.Manifest)
			return err == nil && failed == nil && slices.EqualFunc(before, after, equalButPodAnnotations)
		})
}

func equalButPodAnnotations(a, b *unstructured.Unstructured) bool {
	a = a.DeepCopy()
	if of, other := PodTemplateOf(a), PodTemplateOf(b); of != nil && other != nil {
		of.SetAnnotations(other.GetAnnotations())
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}
