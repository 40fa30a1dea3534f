// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// workload is a workload cluster that answers.
type workload struct {
	name multicluster.ClusterName
	conn *fleet.Connection
}

// reach returns the workload cluster if it is connected, and writes the ClusterReachable condition.
func (r *Reconciler) reach(ca *addonsv1.ClusterAddon) (*workload, bool) {
	name := r.Members.Names.Fleet(ca)
	state := r.Fleet.State(name)
	c := metav1.Condition{
		Type:    addonsv1.ClusterReachableCondition,
		Status:  metav1.ConditionFalse,
		Reason:  state.Reason,
		Message: state.Message,
	}
	conn, connected := r.Fleet.Connection(name)
	switch {
	case connected:
		c.Status = metav1.ConditionTrue
		c.Reason, c.Message = fleet.ReasonConnected, ""
		if state.Reason != fleet.ReasonConnected {
			c.Message = state.Message // why a newer kubeconfig isn't in use
		}
	case state.Phase == fleet.PhaseConnecting || state.Phase == fleet.PhaseUnknown:
		if conditions.IsTrue(ca, c.Type) {
			return nil, false // as after each restart: nothing says that it is otherwise now
		}
		c.Status = metav1.ConditionUnknown
	}
	conditions.Set(ca, c)
	if !connected {
		return nil, false
	}
	return &workload{name: name, conn: conn}, true
}

// target returns the cluster as the deliverer takes it.
func (w *workload) target() deliver.Target {
	return deliver.Target{
		Name:      w.name.String(),
		Client:    w.conn.Client(),
		Dynamic:   w.conn.Dynamic(),
		Discovery: w.conn.Discovery,
		Context:   w.conn.Context(),
	}
}

// targetAs returns the same with the rights of a ServiceAccount of the workload cluster. The
// ServiceAccount is in the namespace with the name of the ClusterAddon's namespace. "" means the
// rights of the kubeconfig.
func (q *clusterRun) targetAs(serviceAccount string) (deliver.Target, error) {
	target := q.workload.target()
	if serviceAccount == "" {
		return target, nil
	}
	actor, err := q.workload.conn.As("system:serviceaccount:" + q.ca.Namespace + ":" + serviceAccount)
	if err != nil {
		return deliver.Target{}, err
	}
	target.Own, target.Client = target.Client, actor
	return target, nil
}

// whileConnected returns a context that ends with the connection, too.
func (w *workload) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.conn.Context(), cancel)
	return ctx, func() { stop(); cancel() }
}

// facts returns what charts may ask about the cluster, read once for each connection. missing are
// group versions that can't be discovered now.
func (w *workload) facts(ctx context.Context) (facts job.Facts, missing []string, err error) {
	found, err := w.conn.Facts(ctx)
	if err != nil {
		return job.Facts{}, nil, err
	}
	return job.Facts{KubeVersion: found.KubernetesVersion, APIVersions: found.APIVersions}, found.Incomplete, nil
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
	status := statusOf(record, phase)
	if q.isProven(record) {
		status.ServiceAccountName = record.ServiceAccount
	}
	return status
}

// isUnreachable reports whether an error is of the connection to a cluster, or of what the
// cluster offers at all: other requests fail for it, too. An answer of the API server is no
// such error, and neither is a request that can't be made. A connection that breaks off within
// an answer may look like either: then the next request tells.
func isUnreachable(err error) bool {
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) || meta.IsNoMatchError(err) {
		return false
	}
	_, ofGroups := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	_, ofResources := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err)
	isOver := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	return ofGroups || ofResources || isOver || isOfNetwork(err)
}

// isOfNetwork reports whether no request came through, or no whole answer: a name that isn't
// found, a connection that isn't made or broke off, a TLS handshake that failed.
func isOfNetwork(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return false // of a disk, whose errors look like those of a network
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Op != "parse"
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF)
}
