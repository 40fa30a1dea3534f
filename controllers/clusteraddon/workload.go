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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// reach returns the connection to the workload cluster, nil if there is none, and writes the ClusterReachable condition.
// While that says AnotherCluster, only isSame takes it back.
func (r *Reconciler) reach(ca *addonsv1.ClusterAddon, name multicluster.ClusterName) *fleet.Connection {
	state := r.Fleet.State(name)
	c := metav1.Condition{
		Type:    addonsv1.ClusterReachableCondition,
		Status:  metav1.ConditionFalse,
		Reason:  state.Reason,
		Message: state.Message,
	}
	conn, connected := r.Fleet.Connection(name)
	switch {
	case connected && conditions.GetReason(ca, c.Type) == addonsv1.AnotherClusterReason:
		return conn
	case connected:
		c = connectedIn(state)
	case state.Phase == fleet.PhaseConnecting || state.Phase == fleet.PhaseUnknown:
		if conditions.IsTrue(ca, c.Type) || conditions.GetReason(ca, c.Type) == addonsv1.AnotherClusterReason {
			return nil // as after each restart: nothing says that it is otherwise now
		}
		c.Status = metav1.ConditionUnknown
	}
	conditions.Set(ca, c)
	return conn
}

// connectedIn returns ClusterReachable of a cluster that has a connection.
func connectedIn(state fleet.State) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionTrue, Reason: fleet.ReasonConnected}
	if state.Reason != fleet.ReasonConnected {
		c.Message = state.Message // why a newer kubeconfig isn't in use
	}
	return c
}

// ownerOf names the ClusterAddon in the records it makes.
func ownerOf(ca *addonsv1.ClusterAddon) string {
	return client.ObjectKeyFromObject(ca).String()
}

// withoutServiceAccount is why an add-on without a ServiceAccount is left as it is.
const withoutServiceAccount = "This provider instance delivers with the rights of ServiceAccounts alone (--require-impersonation). " +
	"Set spec.serviceAccountName of the AddonStack; the add-on is left as it is"

// mayRemove reports whether an add-on whose record is proven may be removed with the rights that the
// record names.
func (q *clusterRun) mayRemove(record deliver.Summary) bool {
	return !q.RequireImpersonation || record.ServiceAccount != ""
}

// unwantedStatus returns the status of an add-on that only a record knows. It has the name of an account
// only if the record is proven.
func (q *clusterRun) unwantedStatus(record deliver.Summary, phase addonsv1.AddonPhase) addonsv1.AddonStatus {
	status := releases.Status(record, phase)
	if q.proofs.Prove(record) {
		status.ServiceAccountName = record.ServiceAccount
	}
	return status
}

// identifyTimeout bounds the question which cluster it is.
const identifyTimeout = 10 * time.Second

// isSame reports whether the connection leads to the cluster that the status is about, and notes that cluster in the
// status. If it leads to another one, the condition ClusterReachable says so. If nobody can tell now, AddonsReady does, and
// the error is to be tried again.
func (q *clusterRun) isSame(ctx context.Context) (bool, error) {
	other, err := q.otherCluster(ctx)
	if err != nil {
		conditions.Set(q.ca, metav1.Condition{
			Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionUnknown, Reason: addonsv1.AddonsUnknownReason,
			Message: shorten(fmt.Sprintf("Nothing is done while the cluster doesn't say which one it is: %v; trying again", err)),
		})
		return false, err
	}
	if other == "" {
		if conditions.GetReason(q.ca, addonsv1.ClusterReachableCondition) == addonsv1.AnotherClusterReason {
			conditions.Set(q.ca, connectedIn(q.Fleet.State(q.workload.Name)))
		}
		return true, nil
	}
	conditions.Set(q.ca, metav1.Condition{
		Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: addonsv1.AnotherClusterReason,
		Message: fmt.Sprintf("The kubeconfig leads to another cluster (namespace kube-system has UID %s) than to that of the add-ons (%s). "+
			"Nothing is done there. Correct the kubeconfig. Or, if the cluster was replaced, delete this ClusterAddon: it is made again, and installs the add-ons there",
			other, q.ca.Status.ClusterUID),
	})
	return false, nil
}

// otherCluster returns the UID of the cluster to which the connection leads, "" if the status is about that one, or about
// none yet. It notes that UID in the status then. A cluster that never tells counts as the same. Each connection is asked
// until it has answered.
func (q *clusterRun) otherCluster(ctx context.Context) (types.UID, error) {
	status, known := &q.ca.Status, &q.memory.identity
	isInstalled := status.ObservedUID == q.ca.UID && slices.ContainsFunc(status.Addons, func(a addonsv1.AddonStatus) bool { return a.Revision > 0 })
	isAboutOne := isInstalled && status.ClusterUID != ""
	if uid := q.workload.Conn.UID(); uid != "" && len(content.IsLabelValue(string(uid))) == 0 {
		*known = identity{conn: q.workload.Conn, uid: uid} // which the fleet has read
	}
	if known.conn != q.workload.Conn {
		ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
		defer cancel()
		system, err := q.workload.Conn.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err): // until there is another connection
			system = &metav1.PartialObjectMetadata{}
		case err != nil && !apierrors.IsNotFound(err) && isAboutOne:
			return "", fmt.Errorf("reading namespace %s: %w", metav1.NamespaceSystem, err)
		case err != nil || len(content.IsLabelValue(string(system.UID))) > 0: // which keeps a hostile text out of the status
			return "", nil
		}
		*known = identity{conn: q.workload.Conn, uid: system.UID}
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
