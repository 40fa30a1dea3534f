// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
			if err != nil {
				return false, err
			}
			lacks = now
			return lacks == "", nil
		})
		if lacks != "" && ctx.Err() != nil { // also if it ended amid a request
			return errors.New(lacks)
		}
		return err
	}}
}

// writer makes the steps that write to the management cluster.
type writer struct {
	client    client.Client
	namespace string
	origin    Origin
}

func (w *World) writer() writer { return writer{w.Client, w.Namespace, w.Origin} }

// patch makes a step that changes an object by a merge patch. An object that is gone needs none.
func (w writer) patch(name string, o client.Object, patch string) Step {
	return Step{name, func(ctx context.Context) error {
		return client.IgnoreNotFound(w.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)), fieldOwner))
	}}
}

// remove makes a step that deletes an object that was read, and not another one of its name.
func (w writer) remove(o client.Object) Step {
	uid := o.GetUID()
	return Step{fmt.Sprintf("delete %s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName()), func(ctx context.Context) error {
		err := w.client.Delete(ctx, o, client.Preconditions{UID: &uid})
		if apierrors.IsConflict(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	}}
}

// label makes a step that sets the label of a Cluster to a value in JSON; null removes it.
func (w writer) label(cluster, label, value string) Step {
	o := newObject(clusterKind, w.namespace, cluster)
	return w.patch(fmt.Sprintf("kubectl label cluster %s -n %s %s=%s", cluster, w.namespace, label, value), o, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, value))
}
