// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

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
