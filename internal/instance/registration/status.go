// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// countTimeout bounds the wait for the cache, which has nothing at first.
const countTimeout = time.Second

// beat writes the status, whole: what anybody else wrote into it goes. That it
// succeeded is the sign of life.
func (r *Registration) beat(ctx context.Context, clusters *addonsv1.InstanceClusters) error {
	next := r.object.DeepCopy()
	for _, c := range append(r.findings.parts(), r.findings.ready()) {
		conditions.Set(next, c)
	}
	sent := r.o.Clock.Now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.object.UID}, // not another object of the name
		"status": map[string]any{
			"conditions":         next.Status.Conditions,
			"observedGeneration": next.Generation,
			"scope":              r.o.Scope.String(),
			"heartbeatTime":      metav1.NewMicroTime(sent),
			"clusters":           clusters,
		},
	})
	if err != nil {
		return err
	}
	if err := r.client.Status().Patch(ctx, next, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of ProviderInstance %s: %w", r.key(), err)
	}
	r.object = next
	r.life.extend(sent)
	return nil
}

// count counts Clusters by their ClusterAddons: each has one. It returns nil while
// the cache doesn't have them.
func (r *Registration) count(ctx context.Context) *addonsv1.InstanceClusters {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	all := &addonsv1.ClusterAddonList{}
	if err := r.clusters.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	n := &addonsv1.InstanceClusters{Total: int32(len(all.Items))}
	for i := range all.Items {
		if conditions.IsTrue(&all.Items[i], addonsv1.ReadyCondition) {
			n.Ready++
		}
	}
	return n
}
