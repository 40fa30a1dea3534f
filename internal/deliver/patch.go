// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/deliver/object"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// patch applies an object, and returns it as the server has it.
func (r *run) patch(ctx context.Context, o *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	result := o.DeepCopy()
	options := []client.ApplyOption{client.FieldOwner(r.manager)}
	if force {
		options = append(options, client.ForceOwnership)
	}
	err := r.t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), options...)
	if !force || !isRolled(o, err) {
		return result, err
	}
	// There may be more that the server has against it.
	if err := r.t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(withoutStrategy(o)), append(options, client.DryRunAll)...); err != nil {
		return nil, err
	}
	version, err := r.stopRolling(ctx, o)
	if err != nil {
		return nil, err
	}
	if result = o.DeepCopy(); o.GetResourceVersion() != "" {
		result.SetResourceVersion(version)
	}
	if err = r.t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), options...); err != nil {
		return nil, err
	}
	return result, r.forgetUpdate(ctx, result)
}

// forgetUpdate takes what was updated of an object out of its managedFields: what is applied owns it by now, and is
// to drop it one day.
func (r *run) forgetUpdate(ctx context.Context, o *unstructured.Unstructured) error {
	return r.setManagers(ctx, o, func(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return slices.DeleteFunc(slices.Clone(managed), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == r.manager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
		})
	})
}

// ownAlone takes the fields that are applied of an object from the manager of what had none: else they would stay
// when the chart drops them.
func (r *run) ownAlone(ctx context.Context, o *unstructured.Unstructured) error {
	return r.setManagers(ctx, o, func(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return drift.Apart(managed, r.manager, object.BeforeFirstApply)
	})
}

// setManagers changes who manages which fields of an object, also while controllers write to it. A change to nil
// is none.
func (r *run) setManagers(ctx context.Context, o *unstructured.Unstructured, change func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		managed := change(o.GetManagedFields())
		if managed == nil {
			return nil
		}
		is := &metav1.PartialObjectMetadata{}
		is.SetGroupVersionKind(o.GroupVersionKind())
		is.Namespace, is.Name, is.UID, is.ResourceVersion, is.ManagedFields = o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion(), o.GetManagedFields()
		changed := is.DeepCopy()
		changed.ManagedFields = managed
		err := r.patchMetadata(ctx, is, changed, r.manager)
		if apierrors.IsConflict(err) {
			live, gone := r.get(ctx, o)
			if gone == nil {
				o.Object = live.Object
			}
			return err
		}
		o.SetManagedFields(changed.ManagedFields)
		o.SetResourceVersion(changed.ResourceVersion)
		return err
	})
}

// neverVersion is a resourceVersion that no object has: etcd's first revision is an empty one's.
const neverVersion = "1"

// patchNew applies an object that isn't there. If it is, the API server answers Conflict, as it has
// another resourceVersion than the one that is asked for; see isThere.
func (r *run) patchNew(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	fresh := o.DeepCopy()
	fresh.SetResourceVersion(neverVersion)
	return r.patch(ctx, fresh, false)
}

// isThere reports whether a new object wasn't applied as there is one. So it may be, too, if an
// aggregated API server has something to say about resourceVersions.
func isThere(err error) bool {
	answer, _ := object.AnswerOf(err)
	return apierrors.IsConflict(err) || strings.Contains(strings.ToLower(answer.Message), "resourceversion")
}

// errAnother: an object is gone, or somebody made another one of its name.
var errAnother = errors.New("it isn't the object that was looked at")

// patchOwn applies an object that was seen with this UID, and is ours. The API server answers
// Conflict if it is gone, and Invalid if there is another one: that is errAnother.
func (r *run) patchOwn(ctx context.Context, o *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	own := o.DeepCopy()
	own.SetUID(uid)
	result, err := r.patch(ctx, own, true)
	if isOfAnother(err) {
		return nil, errAnother
	}
	return result, err
}

func isOfAnother(err error) bool {
	return apierrors.IsConflict(err) || object.IsAbout(err, "metadata.uid")
}

// delete deletes an object, if it has this UID still. One that is gone is no error.
func (r *run) delete(ctx context.Context, o client.Object, uid types.UID, propagation metav1.DeletionPropagation) error {
	r.wrote.Store(true)
	return client.IgnoreNotFound(r.t.Client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation)))
}

// metadata reads an object's metadata.
func (r *run) metadata(ctx context.Context, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	return r.metadataWith(ctx, r.t.Client, e)
}

func (r *run) metadataWith(ctx context.Context, reader client.Reader, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	mapping, err := r.scope.Mapping(e.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	return m, reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, m)
}

// strategyType is the field that says how a Deployment is brought up to date.
var strategyType = fieldpath.MakePathOrDie("spec", "strategy", "type")

var deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// isRolled says that a Deployment was refused for what the server once set by default: how to
// roll it, which must not be set beside the strategy Recreate.
func isRolled(o *unstructured.Unstructured, err error) bool {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "strategy", "type")
	return apierrors.IsInvalid(err) && o.GroupVersionKind().GroupKind() == deploymentKind &&
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
func (r *run) stopRolling(ctx context.Context, o *unstructured.Unstructured) (version string, _ error) {
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
	err = r.t.Client.Patch(ctx, rolled, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(r.manager))
	return rolled.GetResourceVersion(), err
}
