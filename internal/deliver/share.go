// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// share sets fields of a namespace that isn't this add-on's, without its labels. What
// another manager has set differently stays as it is.
func (r *run) share(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) error {
	shared := unlabelled(o)
	theirs, err := r.overwritten(ctx, shared, live)
	if err != nil {
		return err
	}
	r.wrote.Store(true)
	result, err := r.patch(ctx, drift.Without(shared, drift.Owned(theirs)), false)
	return r.noteApplied(o, result, true, err)
}

// unlabelled returns an object without the labels of its add-on.
func unlabelled(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	labels := o.GetLabels()
	delete(labels, addonsv1.AddonLabel)
	delete(labels, addonsv1.AddonNamespaceLabel)
	o.SetLabels(labels)
	return o
}
