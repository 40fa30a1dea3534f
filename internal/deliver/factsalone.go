// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Facts about the cluster change without anybody asking for another add-on: kinds come and go, and Kubernetes gets newer. The
// chart is rendered again then. No pod restarts for an annotation, or for quotes that `lookup` leaves out, as a checksum of a
// Secret shows them.

// isOfFactsAlone reports whether a new revision differs from the deployed one by what the chart made of the cluster's facts, if
// by anything.
func (r revisionMaker) isOfFactsAlone(deployed, made *record.Record) bool {
	if deployed == nil || deployed.Transferred() || deployed.IsRollback() || r.want.Again {
		return false
	}
	return made.Spec == deployed.Spec && made.RenewAt.Equal(deployed.RenewAt) &&
		made.Artifact == deployed.Artifact && made.Chart == deployed.Chart && made.Version == deployed.Version &&
		made.AppVersion == deployed.AppVersion && equality.Semantic.DeepEqual(inJSON(made.Helm.Config), inJSON(deployed.Helm.Config)) &&
		made.State.CRDsDigest == deployed.State.CRDsDigest
}

// takeFacts brings new facts of the cluster into the record of what is deployed, which stays. Hooks don't run for them.
// Others are the objects that the chart would make otherwise.
func (r revisionMaker) takeFacts(ctx context.Context, deployed, made *record.Record, others string) error {
	is := deployed.Summary
	is.Digest, is.FactsUsed, is.Otherwise = made.Digest, made.FactsUsed, others
	r.rec = deployed
	return r.rewrite(ctx, deployed, is)
}

// othersByPodAnnotations returns the objects that differ, as a list for a message, and reports whether they do by annotations
// of pod templates alone.
func othersByPodAnnotations(was, is []*unstructured.Unstructured) (others string, only bool) {
	before := make(map[record.ObjectKey]*unstructured.Unstructured, len(was))
	for _, o := range was {
		before[record.KeyOf(o)] = o
	}
	if was == nil || len(was) != len(is) {
		return "", false
	}
	var differ []string
	for _, o := range is {
		key := record.KeyOf(o)
		switch old := before[key]; {
		case old == nil:
			return "", false
		case equality.Semantic.DeepEqual(old.Object, o.Object):
		case equality.Semantic.DeepEqual(withoutPodAnnotations(old), withoutPodAnnotations(o)):
			differ = append(differ, key.String())
		default:
			return "", false
		}
	}
	return message.List(differ, ", ", message.Few), true
}

// hooksDifferOnlySo reports whether the hooks of two revisions differ by annotations of pod templates, if at all.
func hooksDifferOnlySo(deployed, made *record.Record) bool {
	return slices.EqualFunc(deployed.Helm.Hooks, made.Helm.Hooks, func(was, is *helmrelease.Hook) bool {
		before, after := *was, *is
		before.Manifest, after.Manifest = "", ""
		before.LastRun, after.LastRun = helmrelease.HookExecution{}, helmrelease.HookExecution{}
		x, err := json.Marshal(before) // in which no list and an empty one are the same
		y, failed := json.Marshal(after)
		if err != nil || failed != nil || !bytes.Equal(x, y) {
			return false
		}
		a, err := record.ParseManifest(was.Manifest)
		b, failed := record.ParseManifest(is.Manifest)
		return err == nil && failed == nil && slices.EqualFunc(a, b, func(x, y *unstructured.Unstructured) bool {
			return equality.Semantic.DeepEqual(withoutPodAnnotations(x), withoutPodAnnotations(y))
		})
	})
}

// withoutPodAnnotations returns the fields of an object but for the annotations of its pod template, if it has one.
func withoutPodAnnotations(o *unstructured.Unstructured) map[string]any {
	fields := o.DeepCopy().Object
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		template, _, _ := unstructured.NestedFieldNoCopy(fields, path...)
		pod, isMap := template.(map[string]any)
		if _, found, _ := unstructured.NestedFieldNoCopy(pod, "spec", "containers"); !isMap || !found {
			continue
		}
		unstructured.RemoveNestedField(pod, "metadata", "annotations")
		if metadata, _ := pod["metadata"].(map[string]any); len(metadata) == 0 {
			delete(pod, "metadata")
		}
	}
	return fields
}

// inJSON returns values as a record has them.
func inJSON(values map[string]any) (stored map[string]any) {
	data, err := json.Marshal(values)
	if err != nil || json.Unmarshal(data, &stored) != nil {
		return values // which equals nothing that is stored
	}
	return stored
}
