// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// share sets fields of a namespace that isn't this add-on's, without its labels. What
// another manager has set differently stays as it is.
func (r *run) share(ctx context.Context, o *unstructured.Unstructured) error {
	shared := o.DeepCopy()
	labels := shared.GetLabels()
	delete(labels, addonsv1.AddonLabel)
	delete(labels, addonsv1.AddonNamespaceLabel)
	shared.SetLabels(labels)
	r.wrote.Store(true)
	result, err := r.patch(ctx, shared, false)
	if theirs := conflictingFields(err); len(theirs) > 0 {
		withoutFields(shared, theirs)
		result, err = r.patch(ctx, shared, false)
	}
	if len(conflictingFields(err)) > 0 { // in what is neither a label nor an annotation
		return r.leave(ctx, o)
	}
	return r.noteApplied(o, result, true, err)
}

// conflictingFields are the paths of the fields that other managers own, as the server
// writes them.
func conflictingFields(err error) map[string]bool {
	fields := map[string]bool{}
	var api apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &api) || api.Status().Details == nil {
		return fields
	}
	for _, c := range api.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			fields[c.Field] = true
		}
	}
	return fields
}

// withoutFields leaves out labels and annotations with these paths.
func withoutFields(o *unstructured.Unstructured, paths map[string]bool) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	for key := range labels {
		if paths[".metadata.labels."+key] {
			delete(labels, key)
		}
	}
	for key := range annotations {
		if paths[".metadata.annotations."+key] {
			delete(annotations, key)
		}
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}
