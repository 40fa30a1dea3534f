// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/message"
)

// identifyTimeout bounds the question which cluster it is.
const identifyTimeout = 10 * time.Second

// Identity is which cluster a connection leads to.
//
// Key: the ClusterAddon.
// Bound: until it is gone.
// Lost with it: the cluster is asked once more.
type Identity struct {
	conn *fleet.Connection
	uid  types.UID
}

// IsSame reports whether the connection leads to the cluster that the status is about, and notes that cluster in the
// status. If it leads to another one, the condition ClusterReachable says so. If nobody can tell now, AddonsReady does, and
// the error is to be tried again.
func (known *Identity) IsSame(ctx context.Context, clusters *fleet.Provider, ca *addonsv1.ClusterAddon, cluster Cluster) (bool, error) {
	other, err := known.other(ctx, ca, cluster.Conn)
	if err != nil {
		conditions.Set(ca, metav1.Condition{
			Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionUnknown, Reason: addonsv1.AddonsUnknownReason,
			Message: message.Shorten(fmt.Sprintf("Nothing is done while the cluster doesn't say which one it is: %v; trying again", err), 1024),
		})
		return false, err
	}
	if other == "" {
		if conditions.GetReason(ca, addonsv1.ClusterReachableCondition) == addonsv1.AnotherClusterReason {
			conditions.Set(ca, connectedIn(clusters.State(cluster.Name)))
		}
		return true, nil
	}
	conditions.Set(ca, metav1.Condition{
		Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: addonsv1.AnotherClusterReason,
		Message: fmt.Sprintf("The kubeconfig leads to another cluster (namespace kube-system has UID %s) than to that of the add-ons (%s). "+
			"Nothing is done there. Correct the kubeconfig. Or, if the cluster was replaced, delete this ClusterAddon: it is made again, and installs the add-ons there",
			other, ca.Status.ClusterUID),
	})
	return false, nil
}

// other returns the UID of the cluster to which the connection leads, "" if the status is about that one, or about
// none yet. It notes that UID in the status then. A cluster that never tells counts as the same. Each connection is asked
// until it has answered.
func (known *Identity) other(ctx context.Context, ca *addonsv1.ClusterAddon, conn *fleet.Connection) (types.UID, error) {
	status := &ca.Status
	isInstalled := status.ObservedUID == ca.UID && slices.ContainsFunc(status.Addons, func(a addonsv1.AddonStatus) bool { return a.Revision > 0 })
	isAboutOne := isInstalled && status.ClusterUID != ""
	if uid := conn.UID(); uid != "" && len(content.IsLabelValue(string(uid))) == 0 {
		*known = Identity{conn: conn, uid: uid} // which the fleet has read
	}
	if known.conn != conn {
		ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
		defer cancel()
		system, err := conn.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err): // until there is another connection
			system = &metav1.PartialObjectMetadata{}
		case err != nil && !apierrors.IsNotFound(err) && isAboutOne:
			return "", fmt.Errorf("reading namespace %s: %w", metav1.NamespaceSystem, err)
		case err != nil || len(content.IsLabelValue(string(system.UID))) > 0: // which keeps a hostile text out of the status
			return "", nil
		}
		*known = Identity{conn: conn, uid: system.UID}
	}
	if known.uid == "" {
		return "", nil
	}
	if !isAboutOne || status.ClusterUID == known.uid {
		status.ClusterUID = known.uid
		return "", nil
	}
	return known.uid, nil
}
