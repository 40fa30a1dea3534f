// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// A chart is rendered again without anybody asking for another add-on, where a release of Helm becomes one, and where facts
// about the cluster change. It may write a password in another form then, as without quotes once it finds that in the cluster. The
// checksum of the Secret in a pod template differs, though the data doesn't. No pod restarts for that: annotations stay until
// the add-on changes. What they stand for can't be known, so the data of all Secrets and ConfigMaps counts.

// keepPodAnnotations gives pod templates the annotations that they have, where nothing else of them differs from the previous
// revision. It returns the objects that the chart makes otherwise.
func (m *Maker) keepPodAnnotations(ctx context.Context, rendering *Rendering, made *Made) (kept []string, err error) {
	if made.before == nil {
		return nil, nil
	}
	if made.Previous, _, err = m.Past.Manifest(ctx, made.before); record.IsUnreadable(err) {
		return nil, nil // so all objects are applied
	}
	if made.isUnasked = err == nil && isUnasked(m.Want, rendering, made.before); !made.isUnasked {
		return nil, err
	}
	var there map[record.ObjectKey]*unstructured.Unstructured
	before, wanted := record.ByKey(made.Previous), record.ByKey(made.Objects)
	annotations := map[string]map[string]string{}
	for _, o := range made.Objects {
		is, was := PodTemplateOf(o), PodTemplateOf(before[record.KeyOf(o)])
		if is == nil || was == nil || maps.Equal(is.GetAnnotations(), was.GetAnnotations()) || !equalButAnnotations(is, was) {
			continue
		}
		if there == nil {
			objects := made.Previous
			if !m.Past.Believes(made.before) { // its record is anybody's who may write Secrets there
				objects, err = (&reader{maker: m, inventory: made.Inventory}).live(ctx)
			}
			if _, unreadable := errors.AsType[*failure.Error](err); err != nil && !unreadable {
				return nil, err
			}
			there = record.ByKey(objects)
			if !sameData(before, wanted, there) {
				return nil, nil
			}
		}
		if has := PodTemplateOf(there[record.KeyOf(o)]); has != nil {
			stay := has.GetAnnotations()
			maps.DeleteFunc(stay, func(key, _ string) bool { // it is of others
				_, had := was.GetAnnotations()[key]
				_, wants := is.GetAnnotations()[key]
				return !had && !wants
			})
			is.SetAnnotations(stay)
			annotations[manifest.Identity(o, m.Want.Namespace)] = stay
			kept = append(kept, record.KeyOf(o).String())
		}
	}
	for _, o := range rendering.Objects {
		if stay, is := annotations[manifest.Identity(o, m.Want.Namespace)]; is {
			PodTemplateOf(o).SetAnnotations(stay)
			rendering.Manifest = "" // it is written of the objects
		}
	}
	return kept, nil
}

// isUnasked reports whether nothing but facts about the cluster differs from the inputs of the previous revision. Of a release of
// Helm, chart, version and values are known.
func isUnasked(want *Desired, rendering *Rendering, p *record.Record) bool {
	if p.Complete {
		return !p.Transferred() && !p.IsRollback() && !want.Again && p.RenewAt.Equal(keptvalues.RenewAt(rendering.Generated)) &&
			want.DigestBy(p.FactsUsed) == p.Digest
	}
	of := p.Helm.Chart
	return of != nil && of.Metadata != nil && of.Metadata.Name == rendering.Name && of.Metadata.Version == rendering.Version &&
		record.SameValues(rendering.Values, p.Helm.Config)
}

// PodTemplateOf returns the pod template in an object, as a part of it; nil if there is none.
func PodTemplateOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		field, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		template, _ := field.(map[string]any)
		if _, found, _ := unstructured.NestedFieldNoCopy(template, "spec", "containers"); found {
			return &unstructured.Unstructured{Object: template}
		}
	}
	return nil
}

// equalButAnnotations compares pod templates.
func equalButAnnotations(a, b *unstructured.Unstructured) bool {
	a = a.DeepCopy()
	a.SetAnnotations(b.GetAnnotations())
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// sameData reports whether no data of Secrets and ConfigMaps changes of all that a release had before or is to have. Other keys
// there are of others.
func sameData(before, wanted, there map[record.ObjectKey]*unstructured.Unstructured) bool {
	for _, objects := range []map[record.ObjectKey]*unstructured.Unstructured{before, wanted} {
		for key, o := range objects {
			is, want := dataOf(there[key]), dataOf(wanted[key])
			for field := range dataOf(o) {
				if is[field] == nil || is[field] != want[field] {
					return false
				}
			}
		}
	}
	return true
}

// dataOf returns the data of a Secret or ConfigMap by key, none of any other object.
func dataOf(o *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	if o != nil && o.GetAPIVersion() == "v1" && (o.GetKind() == "Secret" || o.GetKind() == "ConfigMap") {
		for _, field := range []string{"data", "binaryData"} {
			values, _ := o.Object[field].(map[string]any)
			maps.Copy(all, values)
		}
	}
	return all
}

// RestartsPods reports whether the pods of a workload restart as its template changes. A CronJob's don't.
func RestartsPods(before, after *unstructured.Unstructured) bool {
	was, is := PodTemplateOf(before), PodTemplateOf(after)
	return was != nil && is != nil && after.GetKind() != "CronJob" && !equality.Semantic.DeepEqual(was.Object, is.Object)
}
