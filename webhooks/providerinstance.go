// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-providerinstance,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=providerinstances,versions=v1beta1,name=validation.providerinstance.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// ProviderInstance lets nobody claim a scope without rights in it. While it is down no claim can be
// stored. Which claim is granted is decided elsewhere: the status of an object doesn't show who wrote its spec.
type ProviderInstance struct {
	allowsDeletion[*addonsv1.ProviderInstance]

	// Reviews asks the API server what a user may do.
	Reviews client.Writer
}

var _ admission.Validator[*addonsv1.ProviderInstance] = &ProviderInstance{}

// SetupWithManager registers the webhook.
func (w *ProviderInstance) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1.ProviderInstance{}).WithValidator(w).Complete()
}

// ValidateCreate refuses the claim of a scope in which the user has no rights.
func (w *ProviderInstance) ValidateCreate(ctx context.Context, pi *addonsv1.ProviderInstance) (admission.Warnings, error) {
	return w.ValidateUpdate(ctx, &addonsv1.ProviderInstance{}, pi)
}

// ValidateUpdate refuses the same, with each write that changes the spec of an object with a claim.
func (w *ProviderInstance) ValidateUpdate(ctx context.Context, before, after *addonsv1.ProviderInstance) (admission.Warnings, error) {
	if after.Spec.Claim == addonsv1.ScopeWaiting || equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil, nil
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	return nil, w.evaluateClaimant(ctx, &request.UserInfo, after)
}

// evaluateClaimant refuses the claim of a scope in which the user has no rights: who could
// claim it would keep the rightful instance out. ServiceAccounts claim for instances of
// their own namespace alone. Other users, as administrators, need the rights only.
func (w *ProviderInstance) evaluateClaimant(ctx context.Context, user *authenticationv1.UserInfo, pi *addonsv1.ProviderInstance) error {
	if namespace, _, err := serviceaccount.SplitUsername(user.Username); err == nil && namespace != pi.Namespace {
		return forbidden(pi, "metadata.namespace", fmt.Sprintf(
			"%s claims a scope for an instance of namespace %s. A ServiceAccount may do so in its own namespace only", user.Username, pi.Namespace))
	}
	namespaces := instance.ScopeOf(&pi.Spec).Canonical().Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""} // all
	}
	for _, namespace := range namespaces {
		allowed, err := w.mayListClusters(ctx, user, namespace)
		if err != nil {
			return fmt.Errorf("asking what %s may do: %w", user.Username, err)
		}
		if !allowed {
			where := "in all namespaces"
			if namespace != "" {
				where = "in namespace " + namespace
			}
			return forbidden(pi, "spec.namespaces", fmt.Sprintf(
				"%s may not list Clusters %s, and so not claim them. Give it the rights of an instance there, or claim less", user.Username, where))
		}
	}
	return nil
}

// forbidden refuses a claim as Invalid: as Forbidden it would look like a missing right to write the object.
func forbidden(pi *addonsv1.ProviderInstance, field, message string) error {
	err := apierrors.NewInvalid(addonsv1.GroupVersion.WithKind("ProviderInstance").GroupKind(), pi.Name, nil)
	err.ErrStatus.Message = fmt.Sprintf("ProviderInstance %s/%s: %s: %s", pi.Namespace, pi.Name, field, message)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: addonsv1.ScopeForbiddenReason, Field: field, Message: message}}
	return err
}

func (w *ProviderInstance) mayListClusters(ctx context.Context, user *authenticationv1.UserInfo, namespace string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: clusterv1.GroupVersion.Group, Resource: "clusters",
		},
	}}
	for key, value := range user.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	err := w.Reviews.Create(ctx, review)
	return review.Status.Allowed, err
}
