// SPDX-License-Identifier: Apache-2.0

// Package apply writes single objects to a workload cluster, and asks by dry run what a write would change. It knows
// nothing of revisions, or of what an add-on waits for.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Applier applies single objects of an add-on to one cluster, by server-side apply, with the add-on's field manager.
type Applier struct {
	// Client has the add-on's rights.
	Client client.Client
	Scope  *object.Scope
	// IsRead reports whether more is read of an object, once it is applied, than its kind asks for. Nil: of none.
	IsRead func(*unstructured.Unstructured) bool
}

// Apply applies an object, and returns it as the server has it. Of one that is ready once it is there, that is the metadata
// alone, unless it is read.
func (a *Applier) Apply(ctx context.Context, o *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	if readiness.IsReadyOnceThere(o) && (a.IsRead == nil || !a.IsRead(o)) {
		return a.applyForMetadata(ctx, o, force)
	}
	result := o.DeepCopy()
	options := []client.ApplyOption{client.FieldOwner(a.Scope.Manager())}
	if force {
		options = append(options, client.ForceOwnership)
	}
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), options...)
	if !force || !isRolled(o, err) {
		return result, err
	}
	// There may be more that the server has against it.
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(withoutStrategy(o)), append(options, client.DryRunAll)...); err != nil {
		return nil, err
	}
	version, err := a.stopRolling(ctx, o)
	if err != nil {
		return nil, err
	}
	if result = o.DeepCopy(); o.GetResourceVersion() != "" {
		result.SetResourceVersion(version)
	}
	if err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), options...); err != nil {
		return nil, err
	}
	// What was updated is taken out of the managedFields: what is applied owns it by now, and is to drop it one day.
	return result, a.setManagers(ctx, result, func(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return slices.DeleteFunc(slices.Clone(managed), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == a.Scope.Manager() && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
		})
	})
}

// applyForMetadata applies an object, and returns its metadata as the server has it.
func (a *Applier) applyForMetadata(ctx context.Context, o *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	data, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(o.GroupVersionKind())
	is.Namespace, is.Name = o.GetNamespace(), o.GetName()
	options := []client.PatchOption{client.FieldOwner(a.Scope.Manager())}
	if force {
		options = append(options, client.ForceOwnership)
	}
	if err := a.Client.Patch(ctx, is, client.RawPatch(types.ApplyPatchType, data), options...); err != nil {
		return nil, err
	}
	result, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	return &unstructured.Unstructured{Object: result}, err
}

// isRolled says that a Deployment was refused for what the server once set by default: how to
// roll it, which must not be set beside the strategy Recreate.
func isRolled(o *unstructured.Unstructured, err error) bool {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "strategy", "type")
	return apierrors.IsInvalid(err) && o.GroupVersionKind().GroupKind().String() == "Deployment.apps" &&
		strategy == string(appsv1.RecreateDeploymentStrategyType) && object.IsAbout(err, "spec.strategy.rollingUpdate")
}

// withoutStrategy returns a copy of a Deployment without how to bring it up to date.
func withoutStrategy(o *unstructured.Unstructured) *unstructured.Unstructured {
	others := o.DeepCopy()
	unstructured.RemoveNestedField(others.Object, "spec", "strategy")
	return others
}

// stopRolling changes a Deployment's strategy to Recreate, and drops what is about rolling.
// Server-side apply can't drop what it doesn't own. It returns the object's new version.
func (a *Applier) stopRolling(ctx context.Context, o *unstructured.Unstructured) (version string, _ error) {
	metadata := map[string]any{}
	if uid := o.GetUID(); uid != "" {
		metadata["uid"] = uid
	}
	if version := o.GetResourceVersion(); version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{
		"strategy": map[string]any{"type": appsv1.RecreateDeploymentStrategyType, "rollingUpdate": nil},
	}})
	if err != nil {
		return "", err
	}
	rolled := o.DeepCopy()
	err = a.Client.Patch(ctx, rolled, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(a.Scope.Manager()))
	return rolled.GetResourceVersion(), err
}

// neverVersion is a resourceVersion that no object has: etcd's first revision is an empty one's.
const neverVersion = "1"

// ApplyNew applies an object that isn't there. If it is, the API server answers Conflict, as it has
// another resourceVersion than the one that is asked for; see IsThere.
func (a *Applier) ApplyNew(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	fresh := o.DeepCopy()
	fresh.SetResourceVersion(neverVersion)
	return a.Apply(ctx, fresh, false)
}

// IsThere reports whether a new object wasn't applied as there is one. So it may be, too, if an
// aggregated API server has something to say about resourceVersions.
func IsThere(err error) bool {
	answer, _ := object.AnswerOf(err)
	return apierrors.IsConflict(err) || strings.Contains(strings.ToLower(answer.Message), "resourceversion")
}

// ErrAnother says that an object is gone, or that somebody made another one of its name.
var ErrAnother = errors.New("it isn't the object that was looked at")

// ApplyOwn applies an object that was seen with this UID, and is ours. The API server answers
// Conflict if it is gone, and Invalid if there is another one: that is ErrAnother.
func (a *Applier) ApplyOwn(ctx context.Context, o *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	own := o.DeepCopy()
	own.SetUID(uid)
	result, err := a.Apply(ctx, own, true)
	if isOfAnother(err) {
		return nil, ErrAnother
	}
	return result, err
}

func isOfAnother(err error) bool {
	return apierrors.IsConflict(err) || object.IsAbout(err, "metadata.uid")
}

// Delete deletes an object, if it has this UID still. An object that is gone is no error.
func (a *Applier) Delete(ctx context.Context, o client.Object, uid types.UID, propagation metav1.DeletionPropagation) error {
	return client.IgnoreNotFound(a.Client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation)))
}

// Metadata reads an object's metadata.
func (a *Applier) Metadata(ctx context.Context, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	return a.Scope.Metadata(ctx, a.Client, e)
}

// Get reads an object as it is in the cluster.
func (a *Applier) Get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	return live, a.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
}
