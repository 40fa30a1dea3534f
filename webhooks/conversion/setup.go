// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
)

// SetupWithManager makes the manager's webhook server convert (/convert), and
// admit what is written in v1alpha1. It adds v1alpha1 to the manager's scheme:
// where there is no webhook server, nothing knows of v1alpha1.
func SetupWithManager(mgr manager.Manager) error {
	if err := addonsv1alpha1.AddToScheme(mgr.GetScheme()); err != nil {
		return fmt.Errorf("adding v1alpha1 to the scheme: %w", err)
	}
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1alpha1.AddonStack{}).
		WithConverter(AddonStack).
		WithDefaulter(&defaulter{}, admission.DefaulterRemoveUnknownOrOmitableFields).
		Complete()
}
