// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Names of the overlays: of the ExtensionConfig by which Cluster API finds the hooks, and of the webhooks' ClusterRole.
const (
	ExtensionConfigName = "chandler"
	OwnerName           = "chandler-webhooks"
)

// Own makes the webhooks' ClusterRole an owner of the ExtensionConfig, if both are there. So the garbage collector deletes
// it when Chandler is uninstalled, in whatever way. Cluster API deletes and upgrades no Cluster with a topology
// while nobody answers an ExtensionConfig. An error is logged: the hooks are answered all the same.
func (s *Server) Own(ctx context.Context) error {
	if err := s.own(ctx); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		logf.FromContext(ctx).Error(err, "The ExtensionConfig wouldn't be deleted with Chandler")
	}
	return nil
}

func (s *Server) own(ctx context.Context) error {
	config, role := &metav1.PartialObjectMetadata{}, &rbacv1.ClusterRole{}
	config.SetGroupVersionKind(runtimev1.GroupVersion.WithKind("ExtensionConfig"))
	if err := s.Client.Get(ctx, client.ObjectKey{Name: ExtensionConfigName}, config); err != nil {
		return fmt.Errorf("reading ExtensionConfig %s: %w", ExtensionConfigName, err)
	}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: OwnerName}, role); err != nil {
		return fmt.Errorf("reading ClusterRole %s: %w", OwnerName, err)
	}
	before := config.DeepCopy()
	if err := controllerutil.SetOwnerReference(role, config, s.Client.Scheme()); err != nil || equality.Semantic.DeepEqual(before, config) {
		return err
	}
	if err := s.Client.Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("setting the owner of ExtensionConfig %s: %w", ExtensionConfigName, err)
	}
	return nil
}
