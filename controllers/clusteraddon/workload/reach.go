// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
)

// Reach returns the connection to the workload cluster, nil if there is none, and writes the ClusterReachable condition.
// While that says AnotherCluster, only IsSame takes it back.
func Reach(clusters *fleet.Provider, ca *addonsv1.ClusterAddon, name multicluster.ClusterName) *fleet.Connection {
	state := clusters.State(name)
	c := metav1.Condition{
		Type:    addonsv1.ClusterReachableCondition,
		Status:  metav1.ConditionFalse,
		Reason:  state.Reason,
		Message: state.Message,
	}
	conn, connected := clusters.Connection(name)
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
