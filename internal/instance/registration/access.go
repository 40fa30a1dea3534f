// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/skew"
	"github.com/cluster-chandler/chandler/internal/message"
)

// right is something that RBAC grants.
type right struct{ verb, group, resource, namespace string } // namespace "" for all

// access tells which rights the instance has in its scope, and which APIs it finds.
type access struct {
	client     client.Client
	rest       rest.Interface
	namespaces []string // of the scope; none are all
	reads      []schema.GroupResource
	granted    map[right]bool // rights that were granted once
}

// has reports whether this process has a right. The API server answers that to everybody.
// A right that was granted once isn't asked for again.
func (a *access) has(ctx context.Context, wanted right) (bool, error) {
	if a.granted[wanted] {
		return true, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: wanted.verb, Group: wanted.group, Resource: wanted.resource, Namespace: wanted.namespace,
		},
	}}
	if err := a.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether this instance may %s: %w", wanted, err)
	}
	if review.Status.Allowed {
		a.granted[wanted] = true
	}
	return review.Status.Allowed, nil
}

// String returns what the right allows.
func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		resource += "." + r.group
	}
	if r.namespace == "" {
		return r.verb + " " + resource + " in all namespaces"
	}
	return r.verb + " " + resource + " in namespace " + r.namespace
}

// maxNamed is how many missing rights a message names.
const maxNamed = 3

// accessible returns condition NamespacesAccessible.
func (a *access) accessible(ctx context.Context) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.NamespacesAccessibleCondition, Status: metav1.ConditionTrue, Reason: addonsv1.NamespacesAccessibleReason}
	namespaces := a.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var refused []string
	for _, namespace := range namespaces {
		missing, err := a.missingIn(ctx, namespace)
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
	c.Message = "The instance may not " + message.List(refused, ", ", maxNamed) + ": the namespace isn't there yet, or has no RoleBinding for this instance (see config/instance)"
	return c
}

// missingIn returns the first right that is missing in a namespace.
func (a *access) missingIn(ctx context.Context, namespace string) (*right, error) {
	for _, resource := range a.reads {
		for _, verb := range []string{"list", "watch"} {
			wanted := right{verb: verb, group: resource.Group, resource: resource.Resource, namespace: namespace}
			if granted, err := a.has(ctx, wanted); err != nil || !granted {
				return &wanted, err
			}
		}
	}
	return nil, nil
}

// compatible returns condition APICompatible. Without the kind ProviderInstance it is an obstacle. It only reads.
func (a *access) compatible(ctx context.Context) (c metav1.Condition, _ *obstacle) {
	c = metav1.Condition{Type: addonsv1.APICompatibleCondition, Status: metav1.ConditionTrue, Reason: addonsv1.APICompatibleReason}
	gap, err := skew.Check(ctx, a.rest, addonsv1.GroupVersion, &addonsv1.AddonStack{}, &addonsv1.ClusterAddon{}, &addonsv1.ProviderInstance{})
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.InternalErrorReason, err.Error()
	case len(gap.Kinds) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonsv1.APIVersionNotServedReason, gap.String()
		if slices.Contains(gap.Kinds, "ProviderInstance") {
			return c, &obstacle{reason: c.Reason, message: c.Message}
		}
	case len(gap.Fields) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonsv1.APIFieldsMissingReason, gap.String()
	default:
		if newer := gap.Newer(); newer != "" {
			c.Reason, c.Message = addonsv1.APIFieldsUnknownReason, newer
		}
		a.hasClusterAPI(ctx, &c)
	}
	return c, nil
}

// hasClusterAPI adds to the condition whether there are Clusters to manage.
func (a *access) hasClusterAPI(ctx context.Context, c *metav1.Condition) {
	served, err := skew.Serves(ctx, a.rest, clusterv1.GroupVersion.WithKind("Cluster"))
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.InternalErrorReason, err.Error()
	case !served:
		c.Status, c.Reason = metav1.ConditionFalse, addonsv1.APIVersionNotServedReason
		c.Message = fmt.Sprintf("The API server doesn't serve Cluster of %s. Install Cluster API, 1.11 or newer", clusterv1.GroupVersion)
	}
}
