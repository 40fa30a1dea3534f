// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

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
