// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// A chart writes a password in another form once it finds that in the cluster, as without quotes. Then the checksum of the
// Secret in a pod template differs, though the data doesn't. No pod restarts for that where a release of Helm becomes an
// add-on with the same chart and values, as nobody has asked for a change.

// byIdentity are objects by [manifest.Identity].
type byIdentity map[string]*unstructured.Unstructured

func (r revisionMaker) byIdentity(objects []*unstructured.Unstructured) byIdentity {
	all := make(byIdentity, len(objects))
	for _, o := range objects {
		all[manifest.Identity(o, r.release.Namespace)] = o
	}
	return all
}

// keepPodAnnotations gives pod templates of a rendering the annotations that they have in the cluster, if nothing but their
// values differs from the release which is taken over, nor the data of its Secrets and ConfigMaps. It returns the
// workloads whose pods restart.
func (r revisionMaker) keepPodAnnotations(ctx context.Context, rendering *Rendering, inventory []record.Entry) (restarted []record.ObjectKey, _ error) {
	objects, err := r.previous.Manifest()
	if err != nil {
		return nil, err
	}
	weight := object.Weight(objects...)
	if err := r.memory.hold(ctx, weight); err != nil {
		return nil, err
	}
	before, wanted := r.byIdentity(objects), r.byIdentity(rendering.Objects)
	var live byIdentity // read if it is needed
	for _, o := range rendering.Objects {
		id := manifest.Identity(o, r.release.Namespace)
		is, was := podTemplateOf(o), podTemplateOf(before[id])
		if is == nil || was == nil || equality.Semantic.DeepEqual(is.Object, was.Object) {
			continue
		}
		if live == nil && r.takesOverAsIs(rendering) {
			objects, err := (&reader{revisionMaker: r, inventory: inventory}).live(ctx)
			if _, unreadable := errors.AsType[*failure.Error](err); err != nil && !unreadable {
				return nil, err
			}
			live = r.byIdentity(objects)
		}
		if sameData(before, wanted, live) && keepAnnotations(is, was, podTemplateOf(live[id])) {
			rendering.Manifest = "" // it is written of the objects
		} else {
			key := record.KeyOf(o)
			key.Namespace = cmp.Or(key.Namespace, r.release.Namespace)
			restarted = append(restarted, key)
		}
	}
	return restarted, r.memory.hold(ctx, -weight)
}

// takesOverAsIs reports whether a rendering is of the chart and the values that the release has.
func (r revisionMaker) takesOverAsIs(rendering *Rendering) bool {
	of, values := r.previous.Helm.Chart, inJSON(rendering.Values)
	return of != nil && of.Metadata != nil && of.Metadata.Name == rendering.Name && of.Metadata.Version == rendering.Version &&
		(len(values)+len(r.previous.Helm.Config) == 0 || reflect.DeepEqual(values, inJSON(r.previous.Helm.Config)))
}

// podTemplateOf returns the pod template in an object, as a part of it; nil if there is none.
func podTemplateOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	spec, _ := o.Object["spec"].(map[string]any)
	if template, ok := spec["template"].(map[string]any); ok {
		return &unstructured.Unstructured{Object: template}
	}
	return nil
}

// keepAnnotations gives a pod template the live values of those annotations that differ from the release's record, and reports
// whether nothing else does. The record is anybody's who may write Secrets there, so no value is taken from it.
func keepAnnotations(is, was, live *unstructured.Unstructured) bool {
	now, before := is.GetAnnotations(), was.GetAnnotations()
	other := is.DeepCopy()
	if other.SetAnnotations(before); live == nil || len(now) != len(before) || !equality.Semantic.DeepEqual(other.Object, was.Object) {
		return false
	}
	kept, there := maps.Clone(now), live.GetAnnotations()
	for key, value := range now {
		old, had := before[key]
		text, has := there[key]
		if !had || !has {
			return false
		}
		if value != old {
			kept[key] = text
		}
	}
	is.SetAnnotations(kept)
	return true
}

// sameData reports whether no data of Secrets and ConfigMaps changes in the cluster, of all that a release had before or is to
// have. Other keys there are of others.
func sameData(before, wanted, live byIdentity) bool {
	for _, objects := range []byIdentity{before, wanted} {
		for id, o := range objects {
			is, want := dataOf(live[id]), dataOf(wanted[id])
			for key := range dataOf(o) {
				text, has := is[key]
				if expected, wants := want[key]; has != wants || text != expected {
					return false
				}
			}
		}
	}
	return true
}

// dataOf returns the data of a Secret or ConfigMap by key, none of any other object.
func dataOf(o *unstructured.Unstructured) map[string]string {
	if o == nil || o.GetAPIVersion() != "v1" || o.GetKind() != "Secret" && o.GetKind() != "ConfigMap" {
		return nil
	}
	all := map[string]string{}
	for _, field := range []string{"data", "binaryData", "stringData"} { // the last one counts
		values, _ := o.Object[field].(map[string]any)
		for key, value := range values {
			text := fmt.Sprint(value)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && field == "data" && o.GetKind() == "Secret" {
				text = string(plain)
			}
			all[key] = text
		}
	}
	return all
}
