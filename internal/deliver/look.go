// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

const (
	// listedFrom is how many objects of a kind and namespace are looked at by one list.
	listedFrom = 3
	// listedMost is how many objects a list may have. Where there are more, looks at single ones cost less.
	listedMost = 250
)

// lookAhead reads the metadata of objects that aren't known to be ours: those of one kind and
// namespace by one list. What can't be listed is looked at one by one.
func (r *run) lookAhead(ctx context.Context, objects []*unstructured.Unstructured, known map[record.ObjectKey]record.Entry) {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	places := map[place][]record.Entry{}
	for _, o := range objects {
		if e := known[record.KeyOf(o)]; e.UID == "" && e.Name != "" {
			at := place{e.GroupVersionKind(), e.Namespace}
			places[at] = append(places[at], e)
		}
	}
	r.looked = map[record.ObjectKey]*metav1.PartialObjectMetadata{}
	for at, entries := range places {
		if len(entries) < listedFrom {
			continue
		}
		mapping, err := r.scope.mapping(at.kind)
		if err != nil {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(mapping.GroupVersionKind.Kind + "List"))
		if err := r.t.Client.List(ctx, list, client.InNamespace(at.namespace), client.Limit(listedMost)); err != nil || list.Continue != "" {
			continue
		}
		there := make(map[string]*metav1.PartialObjectMetadata, len(list.Items))
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(mapping.GroupVersionKind)
			there[list.Items[i].Name] = &list.Items[i]
		}
		for _, e := range entries {
			r.looked[e.Key()] = there[e.Name]
		}
	}
}

// look returns the metadata of an object, as it was listed or as it is.
func (r *run) look(ctx context.Context, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	live, listed := r.looked[e.Key()]
	switch {
	case !listed || e.UID != "":
		return r.metadata(ctx, e)
	case live == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: e.Group, Resource: e.Kind}, e.Name)
	}
	return live, nil
}
