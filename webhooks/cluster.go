// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
)

// The API server asks for changes of the version alone, by a condition in config/webhook. While
// nobody answers it lets all through: add-ons are no reason to stop the work on Clusters.
// +kubebuilder:webhook:verbs=update,path=/validate-cluster-x-k8s-io-v1beta2-cluster,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,timeoutSeconds=2,groups=cluster.x-k8s.io,resources=clusters,versions=v1beta2,name=validation.cluster.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// Cluster refuses versions of Kubernetes that a Cluster's add-ons aren't for. It is the last
// moment: Cluster API lets nobody take a version back.
type Cluster struct {
	allowsDeletion[*clusterv1.Cluster]

	// Reader reads ClusterAddons, and nothing else.
	Reader client.Reader
}

var _ admission.Validator[*clusterv1.Cluster] = &Cluster{}

// SetupWithManager registers the webhook.
func (w *Cluster) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &clusterv1.Cluster{}).WithValidator(w).Complete()
}

// ValidateCreate allows every Cluster: it has no add-ons yet.
func (w *Cluster) ValidateCreate(context.Context, *clusterv1.Cluster) (admission.Warnings, error) {
	return nil, nil
}

// ValidateUpdate refuses a version of spec.topology that an add-on isn't for. A class that is
// switched in the same write may bring other add-ons, which nobody can evaluate yet.
func (w *Cluster) ValidateUpdate(ctx context.Context, before, after *clusterv1.Cluster) (admission.Warnings, error) {
	from, to := before.Spec.Topology.Version, after.Spec.Topology.Version
	if from == to || to == "" || before.Spec.Topology.ClassRef != after.Spec.Topology.ClassRef || !after.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	ca := &addonsv1.ClusterAddon{}
	if err := w.Reader.Get(ctx, client.ObjectKeyFromObject(after), ca); err != nil {
		if client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "Could not look for the add-ons of a Cluster that is to be upgraded", "Cluster", client.ObjectKeyFromObject(after))
		}
		return nil, nil // as with no webhook at all
	}
	if ca.Status.KubernetesVersions == nil {
		return nil, nil
	}
	version, by := compatibility.Upgrade(ca.Status.KubernetesVersions.Ranges, from, to)
	if by == nil {
		return nil, nil
	}
	why := fmt.Sprintf("an add-on isn't for Kubernetes %s: %s", version, compatibility.Describe(*by))
	if after.Annotations[addonsv1.SkipGatesAnnotation] == to {
		return admission.Warnings{why}, nil
	}
	return nil, apierrors.NewInvalid(clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind).GroupKind(), after.Name, field.ErrorList{
		field.Invalid(field.NewPath("spec", "topology", "version"), to, fmt.Sprintf("%s. Change the add-on first, or set the annotation %s: %s on the Cluster",
			why, addonsv1.SkipGatesAnnotation, to)),
	})
}
