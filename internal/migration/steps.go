// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Step is one write, or a wait. It may be repeated.
type Step struct {
	Name string
	Do   func(context.Context) error
}

// Run does the steps, one after the other, and tells of each. The first one that fails ends it.
func Run(ctx context.Context, steps []Step, tell func(name string)) error {
	for _, s := range steps {
		tell(s.Name)
		if err := s.Do(ctx); err != nil {
			return fmt.Errorf("%s: %w. Run the command again to go on", s.Name, err)
		}
	}
	return nil
}

// fieldOwner is the field manager of the writes.
const fieldOwner = client.FieldOwner("kubectl-chandler")

// pollInterval is the time between two looks of a wait.
const pollInterval = time.Second

// await makes a step that waits until nothing is missing, or the context ends.
func await(name string, missing func(context.Context) (string, error)) Step {
	return Step{name, func(ctx context.Context) error {
		lacks := ""
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			now, err := missing(ctx)
			if err == nil {
				lacks = now
			}
			return lacks == "", err
		})
		if lacks != "" && ctx.Err() != nil { // also if it ended amid a request
			return errors.New(lacks)
		}
		return err
	}}
}

// patch makes a step that changes an object by a merge patch. An object that is gone needs none.
func (w *World) patch(name string, o client.Object, patch string) Step {
	return Step{name, func(ctx context.Context) error {
		return client.IgnoreNotFound(w.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)), fieldOwner))
	}}
}

// remove makes a step that deletes an object that was read, and not another one of its name.
func (w *World) remove(o client.Object) Step {
	uid := o.GetUID()
	kind, _ := w.Client.GroupVersionKindFor(o)
	return Step{fmt.Sprintf("delete %s %s", kind.Kind, o.GetName()), func(ctx context.Context) error {
		err := w.Client.Delete(ctx, o, client.Preconditions{UID: &uid})
		if apierrors.IsConflict(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	}}
}

// label makes a step that sets the label of a Cluster to a value in JSON; null removes it.
func (w *World) label(cluster, label, value string) Step {
	o := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: cluster}}
	return w.patch(fmt.Sprintf("kubectl label cluster %s -n %s %s=%s", cluster, w.Namespace, label, value), o, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, value))
}
