// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// identifyTimeout bounds the question which cluster it is.
const identifyTimeout = 10 * time.Second

// isSame reports whether the connection leads to the cluster that the status is about, and notes that cluster in the
// status. If it leads to another one, the condition ClusterReachable says so. While nobody can tell, it counts as the
// same. Each connection is asked once.
func (q *clusterRun) isSame(ctx context.Context) bool {
	known := &q.memory.identity
	if known.conn != q.workload.conn {
		ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
		defer cancel()
		system, err := q.workload.conn.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err): // until there is another connection
			system = &metav1.PartialObjectMetadata{}
		case err != nil || len(content.IsLabelValue(string(system.UID))) > 0: // which keeps a hostile text out of the status
			return true
		}
		*known = identity{conn: q.workload.conn, uid: system.UID}
	}
	if known.uid == "" {
		return true
	}
	status := &q.ca.Status
	isInstalled := status.ObservedUID == q.ca.UID && slices.ContainsFunc(status.Addons, func(a addonsv1.AddonStatus) bool { return a.Revision > 0 })
	if !isInstalled || status.ClusterUID == "" || status.ClusterUID == known.uid {
		status.ClusterUID = known.uid
		return true
	}
	conditions.Set(q.ca, metav1.Condition{
		Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: addonsv1.AnotherClusterReason,
		Message: fmt.Sprintf("The kubeconfig leads to another cluster (namespace kube-system has UID %s) than to that of the add-ons (%s). "+
			"Nothing is done there. Correct the kubeconfig. Or, if the cluster was replaced, delete this ClusterAddon: it is made again, and installs the add-ons there",
			known.uid, status.ClusterUID),
	})
	return false
}
