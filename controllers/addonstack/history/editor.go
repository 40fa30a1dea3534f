// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/message"
)

// EditorOf returns who wrote the spec of an object last, "" if that isn't known: the field manager, and the object that Flux or
// Argo CD applied it for, as in "kustomize-controller (Kustomization flux-system/apps)". It has at most 256 bytes.
func EditorOf(o metav1.Object) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && hasSpec(e.FieldsV1) && !e.Time.Before(last.Time) {
			last = e
		}
	}
	by, of := last.Manager, ""
	switch labels := o.GetLabels(); {
	case by == "kustomize-controller":
		of = appliedFor("Kustomization", labels["kustomize.toolkit.fluxcd.io/namespace"], labels["kustomize.toolkit.fluxcd.io/name"])
	case by == "helm-controller":
		of = appliedFor("HelmRelease", labels["helm.toolkit.fluxcd.io/namespace"], labels["helm.toolkit.fluxcd.io/name"])
	case strings.HasPrefix(by, "argocd-"):
		application, _, _ := strings.Cut(o.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
		of = appliedFor("Application", "", application)
	}
	return message.Shorten(by+of, 256)
}

func appliedFor(kind, namespace, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", kind, strings.TrimPrefix(namespace+"/"+name, "/"))
}

// hasSpec reports whether a field of the spec is among the fields.
func hasSpec(fields *metav1.FieldsV1) bool {
	var of struct {
		Spec json.RawMessage `json:"f:spec"`
	}
	return fields != nil && json.Unmarshal(fields.GetRawBytes(), &of) == nil && of.Spec != nil
}
