// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// noteReplaced notes on each revision which objects have other values than the revision was made with. The API server is
// asked once more before that is written.
func (r Rollouts) noteReplaced(ctx context.Context, revisions []appsv1.ControllerRevision) error {
	for i := range revisions {
		noted := revisions[i].Annotations[addonsv1.RolloutInputsReplacedAnnotation]
		replaced, err := replacedIn(ctx, &revisions[i], r.Values.Digest)
		if err == nil && replaced != noted {
			replaced, err = replacedIn(ctx, &revisions[i], r.Values.DigestNow)
		}
		if err != nil {
			return err
		}
		if replaced == noted {
			continue
		}
		if err := r.annotate(ctx, &revisions[i], func(is *appsv1.ControllerRevision) {
			if metav1.SetMetaDataAnnotation(&is.ObjectMeta, addonsv1.RolloutInputsReplacedAnnotation, replaced); replaced == "" {
				delete(is.Annotations, addonsv1.RolloutInputsReplacedAnnotation)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// replacedIn returns the names of objects that have other values than a revision pins, separated by commas.
func replacedIn(ctx context.Context, revision *appsv1.ControllerRevision, digest func(context.Context, string, addonsv1.ValuesReference) (string, error)) (string, error) {
	pinned, err := stack.InputsOf(revision)
	if err != nil {
		return "", err
	}
	replaced := sets.New[string]()
	for name, digestThen := range pinned {
		ref, ok := stack.ValuesNamed(name)
		if !ok {
			continue // nobody here makes such a name
		}
		is, err := digest(ctx, revision.Namespace, ref)
		if err != nil {
			return "", err
		}
		if is != digestThen {
			replaced.Insert(ref.Kind + "/" + ref.Name)
		}
	}
	return strings.Join(sets.List(replaced), ","), nil
}
