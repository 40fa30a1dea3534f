// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/skew"
)

// compatible is condition APICompatible. Where not even a ProviderInstance can be
// written, it is an obstacle instead.
func (r *Registration) compatible(ctx context.Context) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.APICompatibleCondition, Status: metav1.ConditionTrue, Reason: addonsv1.APICompatibleReason}
	gap, err := skew.Check(ctx, r.rest, addonsv1.GroupVersion, &addonsv1.AddonStack{}, &addonsv1.ClusterAddon{}, &addonsv1.ProviderInstance{})
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.InternalErrorReason, err.Error()
	case len(gap.Kinds) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonsv1.APIVersionNotServedReason, gap.String()
		if slices.Contains(gap.Kinds, "ProviderInstance") {
			r.findings.obstacle = &obstacle{reason: c.Reason, message: c.Message}
		}
	case len(gap.Fields) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonsv1.APIFieldsMissingReason, gap.String()
	default:
		r.hasClusterAPI(ctx, &c)
	}
	return c
}

// hasClusterAPI adds to the condition whether there are Clusters to look after.
func (r *Registration) hasClusterAPI(ctx context.Context, c *metav1.Condition) {
	served, err := skew.Serves(ctx, r.rest, clusterv1.GroupVersion.WithKind("Cluster"))
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.InternalErrorReason, err.Error()
	case !served:
		c.Status, c.Reason = metav1.ConditionFalse, addonsv1.APIVersionNotServedReason
		c.Message = fmt.Sprintf("The API server doesn't serve Cluster of %s. Install Cluster API, 1.11 or newer", clusterv1.GroupVersion)
	}
}
