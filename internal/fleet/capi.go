// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

const (
	// kubeconfigSuffix ends the name of a kubeconfig Secret.
	kubeconfigSuffix = "-" + string(secret.Kubeconfig)
	// missingRecheck is how often a Secret that isn't there is looked for, in
	// case the manager's cache doesn't cover it. Up to half of it is taken off.
	missingRecheck = time.Minute
	// sourceWorkers read Secrets in parallel, and retryMax bounds the time
	// between reads of one that fail.
	sourceWorkers, retryMax = 10, 30 * time.Second
)

// PropertyClusterClass is the Property that holds the name of a Cluster's class.
const PropertyClusterClass = "clusterClass"

// ClusterAPISource reports Cluster API's Clusters under the name
// "namespace/name", with the kubeconfig of the Secret "<name>-kubeconfig".
//
// Clusters come from the cache of the local manager, so its restrictions hold.
// Secrets are watched there by their metadata only, and the one that changed is
// read from the API server. A Cluster that is being deleted stays reported until
// it is gone: its add-ons may still have to be cleaned up. One that leaves the
// watch filter is removed at once.
type ClusterAPISource struct {
	watchFilter string

	clusters client.Reader // cached
	metadata client.Reader // cached
	secrets  client.Reader // live
	sink     Sink
	queue    atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]

	mu   sync.Mutex
	read map[types.NamespacedName]kubeconfigRead // by Cluster
}

// kubeconfigRead is what was last read of a kubeconfig Secret.
type kubeconfigRead struct {
	resourceVersion string // empty: read again
	kubeconfig      []byte
	problem         string
}

// NewClusterAPISource returns a source of the Clusters whose label
// cluster.x-k8s.io/watch-filter has a value, or of all if that is empty.
func NewClusterAPISource(watchFilter string) *ClusterAPISource {
	return &ClusterAPISource{watchFilter: watchFilter, read: map[types.NamespacedName]kubeconfigRead{}}
}

// SetupWithManager implements Source. The manager's scheme must hold Cluster
// API's types.
func (s *ClusterAPISource) SetupWithManager(mgr mcmanager.Manager, sink Sink) error {
	local := mgr.GetLocalManager()
	s.clusters, s.metadata, s.secrets, s.sink = local.GetCache(), local.GetCache(), local.GetAPIReader(), sink
	isKubeconfig := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return strings.HasSuffix(o.GetName(), kubeconfigSuffix)
	})
	err := ctrl.NewControllerManagedBy(local).
		Named("fleet").
		For(&clusterv1.Cluster{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(clusterOfSecret), builder.WithPredicates(isKubeconfig)).
		WatchesRawSource(source.Func(s.captureQueue)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: sourceWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, retryMax),
		}).
		Complete(s)
	if err != nil {
		return fmt.Errorf("setting up the discovery of Clusters: %w", err)
	}
	return nil
}

func (s *ClusterAPISource) captureQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.queue.Store(&queue)
	return nil
}

func clusterOfSecret(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: o.GetNamespace(), Name: strings.TrimSuffix(o.GetName(), kubeconfigSuffix),
	}}}
}

// Refresh implements Source.
func (s *ClusterAPISource) Refresh(name multicluster.ClusterName) {
	namespace, clusterName, _ := strings.Cut(name.String(), "/")
	key := types.NamespacedName{Namespace: namespace, Name: clusterName}
	s.mu.Lock()
	if last, ok := s.read[key]; ok {
		last.resourceVersion = ""
		s.read[key] = last
	}
	s.mu.Unlock()
	if queue := s.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: key})
	}
}

// Reconcile reports one Cluster. It writes nothing.
func (s *ClusterAPISource) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := multicluster.ClusterName(request.String())
	cluster := &clusterv1.Cluster{}
	err := s.clusters.Get(ctx, request.NamespacedName, cluster)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the Cluster: %w", err)
	}
	if exists := err == nil; !exists || !s.inScope(cluster) {
		s.forget(request.NamespacedName)
		s.sink.Remove(name)
		return reconcile.Result{}, nil
	}

	read, err := s.kubeconfig(ctx, cluster)
	s.sink.Set(name, Member{
		ID:         string(cluster.UID),
		Kubeconfig: read.kubeconfig,
		Problem:    read.problem,
		Origin:     "Secret " + request.String() + kubeconfigSuffix,
		Labels:     cluster.Labels,
		Properties: propertiesOf(cluster),
	})
	if err == nil && read.kubeconfig == nil {
		return reconcile.Result{RequeueAfter: wait.Jitter(missingRecheck/2, 1)}, nil
	}
	return reconcile.Result{}, err
}

func (s *ClusterAPISource) inScope(cluster *clusterv1.Cluster) bool {
	return s.watchFilter == "" || cluster.Labels[clusterv1.WatchLabel] == s.watchFilter
}

func propertiesOf(cluster *clusterv1.Cluster) map[string]string {
	if class := cluster.Spec.Topology.ClassRef.Name; class != "" {
		return map[string]string{PropertyClusterClass: class}
	}
	return nil
}

// kubeconfig returns what the Secret holds. It is read only if the watched
// metadata says that it has changed, or tells nothing about it. When reading
// fails, what was read before stays.
func (s *ClusterAPISource) kubeconfig(ctx context.Context, cluster *clusterv1.Cluster) (kubeconfigRead, error) {
	key := client.ObjectKeyFromObject(cluster)
	secretKey := client.ObjectKey{Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.Kubeconfig)}
	seen := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	if err := s.metadata.Get(ctx, secretKey, seen); client.IgnoreNotFound(err) != nil {
		return s.last(key), fmt.Errorf("getting the metadata of the kubeconfig Secret: %w", err)
	}
	last := s.last(key)
	if last.resourceVersion != "" && last.resourceVersion == seen.ResourceVersion {
		return last, nil
	}

	object := &corev1.Secret{}
	err := s.secrets.Get(ctx, secretKey, object)
	switch {
	case apierrors.IsNotFound(err):
		return s.keep(key, kubeconfigRead{}), nil
	case err != nil:
		last.resourceVersion = ""
		last.problem = "can't be read (" + reasonOf(err) + ")"
		return s.keep(key, last), fmt.Errorf("getting the kubeconfig Secret: %w", err)
	}
	read := kubeconfigRead{resourceVersion: object.ResourceVersion, kubeconfig: object.Data[secret.KubeconfigDataName]}
	if len(read.kubeconfig) == 0 {
		read.kubeconfig, read.problem = nil, fmt.Sprintf("has no data under the key %q", secret.KubeconfigDataName)
	}
	return s.keep(key, read), nil
}

// reasonOf returns a constant word for an error of the API server.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "the API server does not answer"
}

func (s *ClusterAPISource) last(key types.NamespacedName) kubeconfigRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[key]
}

func (s *ClusterAPISource) keep(key types.NamespacedName, read kubeconfigRead) kubeconfigRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[key] = read
	return read
}

func (s *ClusterAPISource) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, key)
}
