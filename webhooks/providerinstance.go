// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-providerinstance,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=providerinstances,versions=v1beta1,name=validation.providerinstance.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// ProviderInstance lets no two live instances claim one object, and nobody claim without rights in it.
// Nothing else checks that: while it is down no claim can be stored.
type ProviderInstance struct {
	allowsDeletion[*addonsv1.ProviderInstance]

	Arbiter *arbiter.Arbiter
	// Reviews asks the API server what a user may do.
	Reviews client.Writer
}

var _ admission.Validator[*addonsv1.ProviderInstance] = &ProviderInstance{}

// SetupWithManager registers the webhook.
func (w *ProviderInstance) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1.ProviderInstance{}).WithValidator(w).Complete()
}

// ValidateCreate refuses the claim of a scope that isn't free.
func (w *ProviderInstance) ValidateCreate(ctx context.Context, pi *addonsv1.ProviderInstance) (admission.Warnings, error) {
	return nil, w.judge(ctx, nil, pi)
}

// ValidateUpdate refuses the claim of a scope that isn't free, an object that
// another process writes, and a claim with a step left out.
func (w *ProviderInstance) ValidateUpdate(ctx context.Context, before, after *addonsv1.ProviderInstance) (admission.Warnings, error) {
	return nil, w.judge(ctx, before, after)
}

func (w *ProviderInstance) judge(ctx context.Context, before, after *addonsv1.ProviderInstance) error {
	refusal, err := w.Arbiter.Judge(ctx, before, after)
	if err == nil && refusal == nil && claims(before, after) {
		var request admission.Request
		if request, err = admission.RequestFromContext(ctx); err == nil {
			refusal, err = w.judgeClaimant(ctx, &request.UserInfo, after)
		}
	}
	if err != nil {
		return err
	}
	if refusal == nil {
		return nil
	}
	return refusal.StatusError(after)
}

// claims reports whether the write asks for a scope. A write that leaves the spec as it is doesn't.
func claims(before, after *addonsv1.ProviderInstance) bool {
	return after.Spec.Claim != addonsv1.ScopeWaiting && (before == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec))
}

// judgeClaimant refuses the claim of a scope in which the user has no rights: who could
// claim it would keep the rightful instance out. ServiceAccounts claim for instances of
// their own namespace alone. Other users, as administrators, need the rights only.
func (w *ProviderInstance) judgeClaimant(ctx context.Context, user *authenticationv1.UserInfo, pi *addonsv1.ProviderInstance) (*instance.Refusal, error) {
	if namespace, _, err := serviceaccount.SplitUsername(user.Username); err == nil && namespace != pi.Namespace {
		return &instance.Refusal{Cause: instance.ScopeForbidden, Field: "metadata.namespace", Message: fmt.Sprintf(
			"%s claims a scope for an instance of namespace %s. A ServiceAccount may do so in its own namespace only", user.Username, pi.Namespace)}, nil
	}
	namespaces := instance.ScopeOf(&pi.Spec).Canonical().Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""} // all
	}
	for _, namespace := range namespaces {
		allowed, err := w.mayListClusters(ctx, user, namespace)
		if err != nil {
			return nil, fmt.Errorf("asking what %s may do: %w", user.Username, err)
		}
		if !allowed {
			where := "in all namespaces"
			if namespace != "" {
				where = "in namespace " + namespace
			}
			return &instance.Refusal{Cause: instance.ScopeForbidden, Field: "spec.namespaces", Message: fmt.Sprintf(
				"%s may not list Clusters %s, and so not claim them. Give it the rights of an instance there, or claim less", user.Username, where)}, nil
		}
	}
	return nil, nil
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
