// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// patch applies an object, and returns it as the server has it.
func (r *run) patch(ctx context.Context, o *unstructured.Unstructured, force bool, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
	result := o.DeepCopy()
	options = append(options, client.FieldOwner(r.manager))
	if force {
		options = append(options, client.ForceOwnership)
	}
	err := r.t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), options...)
	if !force || !isRolled(o, err) {
		return result, err
	}
	version, err := r.stopRolling(ctx, o)
	if err != nil {
		return nil, err
	}
	if result = o.DeepCopy(); o.GetResourceVersion() != "" {
		result.SetResourceVersion(version)
	}
	err = r.t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), options...)
	return result, err
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

func isOfAnother(err error) bool { return apierrors.IsConflict(err) || isAbout(err, "metadata.uid") }

// metadata reads an object's metadata.
func (r *run) metadata(ctx context.Context, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	return r.metadataWith(ctx, r.t.Client, e)
}

func (r *run) metadataWith(ctx context.Context, reader client.Reader, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	mapping, err := r.scope.mapping(e.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	return m, reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, m)
}
