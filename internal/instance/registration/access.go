// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// namedNamespaces is how many a message names.
const namedNamespaces = 3

// right is something that RBAC grants.
type right struct {
	verb, group, resource, subresource string
	namespace                          string // "" for all
}

// ownRights are those that the registration itself uses, in its own namespace.
func (r *Registration) ownRights() []right {
	var rights []right
	for _, verb := range []string{"get", "create", "update", "delete"} {
		rights = append(rights, right{verb: verb, group: addonsv1.GroupVersion.Group, resource: "providerinstances", namespace: r.o.Namespace})
	}
	return append(rights, right{verb: "patch", group: addonsv1.GroupVersion.Group, resource: "providerinstances", subresource: "status", namespace: r.o.Namespace})
}

// has asks the API server whether this process has a right, which everybody may
// ask of themselves. What was granted once isn't asked again.
func (r *Registration) has(ctx context.Context, wanted right) (bool, error) {
	if r.granted[wanted] {
		return true, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: wanted.verb, Group: wanted.group, Resource: wanted.resource, Subresource: wanted.subresource, Namespace: wanted.namespace,
		},
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether this instance may %s: %w", wanted, err)
	}
	if review.Status.Allowed {
		r.granted[wanted] = true
	}
	return review.Status.Allowed, nil
}

// String says what the right is to.
func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		resource += "." + r.group
	}
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	if r.namespace == "" {
		return r.verb + " " + resource + " in all namespaces"
	}
	return r.verb + " " + resource + " in namespace " + r.namespace
}

// mayRegister finds out whether the instance may keep its ProviderInstance.
func (r *Registration) mayRegister(ctx context.Context) *obstacle {
	for _, wanted := range r.ownRights() {
		switch granted, err := r.has(ctx, wanted); {
		case err != nil:
			return &obstacle{reason: "APIServerUnavailable", message: err.Error()}
		case !granted:
			return &obstacle{reason: "NotAllowed", message: fmt.Sprintf(
				"It may not %s, where it has to register: that namespace isn't there, or has no RoleBinding for this instance (see config/instance)", wanted)}
		}
	}
	return nil
}

// accessible is condition NamespacesAccessible. A controller that may not list
// what it looks after would only collect refusals.
func (r *Registration) accessible(ctx context.Context) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.NamespacesAccessibleCondition, Status: metav1.ConditionTrue, Reason: addonsv1.NamespacesAccessibleReason}
	namespaces := r.o.Scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var refused []string
	for _, namespace := range namespaces {
		missing, err := r.missingIn(ctx, namespace)
		if err != nil {
			c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.InternalErrorReason, err.Error()
			return c
		}
		if missing != nil {
			refused = append(refused, missing.String())
		}
	}
	if len(refused) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, addonsv1.NamespaceNotAccessibleReason
	what := strings.Join(refused[:min(len(refused), namedNamespaces)], ", ")
	if more := len(refused) - namedNamespaces; more > 0 {
		what += fmt.Sprintf(", and the like in %d more", more)
	}
	c.Message = "The instance may not " + what + ": the namespace isn't there yet, or has no RoleBinding for this instance (see config/instance)"
	return c
}

// missingIn returns the first right that is missing in a namespace.
func (r *Registration) missingIn(ctx context.Context, namespace string) (*right, error) {
	for _, resource := range r.o.Reads {
		for _, verb := range []string{"list", "watch"} {
			wanted := right{verb: verb, group: resource.Group, resource: resource.Resource, namespace: namespace}
			if granted, err := r.has(ctx, wanted); err != nil || !granted {
				return &wanted, err
			}
		}
	}
	return nil, nil
}
