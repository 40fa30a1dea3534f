// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Limits of the objects that templates may read from a cluster in one rendering.
const (
	maxFound      = 1000
	maxFoundBytes = 16 << 20
)

// reader reads objects that a release has, or that may go over to it, for its rendering.
type reader struct {
	maker     *Maker
	inventory []record.Entry
	objects   int
	bytes     int
}

// lookup answers what templates ask `lookup` for: of the objects that the release has, and that are its
// own in the cluster, or may go over to it. Anything else isn't found.
func (r *reader) lookup(ctx context.Context, asked []job.Lookup) ([]job.LookupAnswer, error) {
	answers := make([]job.LookupAnswer, 0, len(asked))
	for _, a := range asked {
		gvk := schema.FromAPIVersionAndKind(a.APIVersion, a.Kind)
		items := []any{}
		answer := job.LookupAnswer{Lookup: a}
		for _, e := range r.inventory {
			elsewhere := e.Namespace != "" && a.Namespace != e.Namespace && (a.Name != "" || a.Namespace != "")
			if e.Group != gvk.Group || e.Kind != gvk.Kind || a.Name != "" && a.Name != e.Name || elsewhere {
				continue
			}
			e.Version = gvk.Version
			live, err := r.read(ctx, e)
			if err != nil {
				return nil, err
			}
			if live != nil {
				answer.Object = live.Object
				items = append(items, live.Object)
			}
		}
		if a.Name == "" && len(items) > 0 {
			answer.Object = map[string]any{"apiVersion": a.APIVersion, "kind": a.Kind + "List", "metadata": map[string]any{}, "items": items}
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// live returns the objects of the release, but for CRDs: they hold no values.
func (r *reader) live(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, e := range r.inventory {
		if e.GroupVersionKind().GroupKind() == object.CRDKind {
			continue
		}
		o, err := r.read(ctx, e)
		if err != nil {
			return nil, err
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return all, nil
}

// read returns an object, nil if it isn't there or isn't the release's. The values of a Secret are
// hidden in messages from then on.
func (r *reader) read(ctx context.Context, e record.Entry) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.GroupVersionKind())
	err := r.maker.Applier.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, o)
	switch {
	case object.IsGone(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, failure.New(object.ReasonForbidden,
			"reading %s, whose values the chart keeps: %w; allow it", e.Key(), object.Redact(err, e.Key()))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", e.Key(), object.Redact(err, e.Key()))
	}
	e.Helm = true // the record may be ours, and the object Helm's still
	m := &metav1.ObjectMeta{UID: o.GetUID(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(), ManagedFields: o.GetManagedFields()}
	if !object.IsOwned(m, e, r.maker.Want.Release, r.maker.Past.Adopted) && !r.isLeft(m) && !r.isOrphan(m) {
		return nil, nil
	}
	o.SetManagedFields(nil)
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	r.objects++
	if r.bytes += len(data); r.objects > maxFound || r.bytes > maxFoundBytes {
		return nil, failure.New(job.ReasonOutputTooLarge,
			"what the chart generates is kept by reading its objects, of which there are more than %d, or %d bytes; split it", maxFound, maxFoundBytes)
	}
	r.maker.Past.Hidden.Learn(job.SecretsIn(o.Object)...)
	return o, r.maker.Past.Memory.Hold(ctx, object.Weight(o))
}

// isOrphan reports whether an object that is to be adopted is nobody's: Chandler left it to Helm, and noted no owner.
func (r *reader) isOrphan(m *metav1.ObjectMeta) bool {
	adopts := r.maker.Want.Adoption == addonsv1.AdoptionPolicyAdopt || r.maker.Want.Adoption == addonsv1.AdoptionPolicyAdoptIfEqual
	return adopts && object.OwnerOf(m) == (record.Release{}) && object.HelmOwner(m) == (record.Release{}) && object.ManagedBy(m, object.HelmManager)
}

// isLeft reports whether an object is of a release that leaves, as its field manager shows.
func (r *reader) isLeft(m *metav1.ObjectMeta) bool {
	owner := object.OwnerOf(m)
	return slices.Contains(r.maker.Want.Leaving, owner) && object.ManagedBy(m, object.FieldManager(owner))
}
