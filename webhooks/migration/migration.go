// SPDX-License-Identifier: Apache-2.0

// Package migration has objects of an older version of the API stored in the newest, so that a later
// release can drop the older one. It runs with the webhooks. Cluster API's own migrator does the
// work. The second of two replicas meets a conflict and leaves it at that.
package migration

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// CRD is the name of the only CustomResourceDefinition with more than one version.
const CRD = "addonstacks.addons.cluster.x-k8s.io"

// Setup adds the migration to the manager. Its scheme must have CustomResourceDefinitions
// and Chandler's types, and its cache must be limited by CacheByObject.
func Setup(ctx context.Context, mgr manager.Manager) error {
	migrator := &crdmigrator.CRDMigrator{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		// It is for versions that are no longer served, of which there is none. It would
		// need the right to write all of an AddonStack.
		SkipCRDMigrationPhases: []crdmigrator.Phase{crdmigrator.CleanupManagedFieldsPhase},
		Config: map[client.Object]crdmigrator.ByObjectConfig{
			// Through the status, since admission might refuse a stack that was stored
			// before a rule came up.
			&addonsv1.AddonStack{}: {UseStatusForStorageVersionMigration: true},
		},
	}
	if err := migrator.SetupWithManager(ctx, mgr, controller.Options{}); err != nil {
		return fmt.Errorf("setting up the migration of stored versions: %w", err)
	}
	return nil
}

// CacheByObject limits what is watched to the one CustomResourceDefinition of the rights.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&apiextensionsv1.CustomResourceDefinition{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, CRD)},
	}
}
