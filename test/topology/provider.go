// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/test/apiserver"
)

// finalizer is on objects that have something outside of the management cluster.
const finalizer = "topology.chandler.test/provider"

// soon is after how long the provider looks again at what it can't watch.
const soon = 100 * time.Millisecond

// errLater is returned while something isn't there yet, or is held.
var errLater = errors.New("later")

// Provider is the controllers of all four kinds. They run in this process.
type Provider struct {
	client  client.Client
	dir     string
	version string // of the API servers' code
	stop    func() // the controllers and the workload clusters

	mu      sync.Mutex // guards what follows
	servers map[client.ObjectKey]*apiserver.Server
	held    map[hold]bool
}

// object is one of the provider's, and the Cluster that it belongs to.
type object struct {
	*unstructured.Unstructured
	cluster client.ObjectKey
}

// Workload returns the workload cluster of a Cluster, nil if there is none.
func (p *Provider) Workload(cluster client.ObjectKey) *apiserver.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.servers[cluster]
}

// startProvider runs the controllers until stop is called.
func startProvider(hub *apiserver.Server, dir string) (*Provider, error) {
	version, err := hub.Clientset.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	user, err := hub.AddUser("test-provider", "system:masters")
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(user.Config, ctrl.Options{
		Scheme:     apiserver.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // of a second environment in this process
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{
		client: mgr.GetClient(), dir: dir, version: version.GitVersion,
		servers: map[client.ObjectKey]*apiserver.Server{}, held: map[hold]bool{},
	}
	for _, err := range []error{
		p.add(mgr, LocalCluster, p.provideInfrastructure, nil),
		p.add(mgr, LocalControlPlane, p.provideControlPlane, p.stopControlPlane),
		p.add(mgr, LocalConfig, p.provideConfig, nil),
		p.add(mgr, LocalMachine, p.provideMachine, p.deleteNode),
	} {
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the provider for tests ended:", err)
		}
	}()
	p.stop = func() {
		cancel()
		<-ended
		for _, server := range p.servers {
			_ = server.Stop()
		}
	}
	return p, nil
}

// add adds a controller. It provides what a living object asks for; what is left of a deleted one, if anything, it releases.
func (p *Provider) add(mgr ctrl.Manager, kind schema.GroupVersionKind, provide, release func(context.Context, object) error) error {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(kind)
	return ctrl.NewControllerManagedBy(mgr).Named(kind.Kind).For(one).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}). // to start a cluster takes seconds
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
			err := p.reconcile(ctx, kind, req.NamespacedName, provide, release)
			// What the cache doesn't have yet is there soon.
			if errors.Is(err, errLater) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				return ctrl.Result{RequeueAfter: soon}, nil
			}
			return ctrl.Result{}, err
		}))
}

func (p *Provider) reconcile(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey, provide, release func(context.Context, object) error) error {
	obj := object{Unstructured: &unstructured.Unstructured{}}
	obj.SetGroupVersionKind(kind)
	if err := p.client.Get(ctx, key, obj.Unstructured); err != nil {
		return client.IgnoreNotFound(err)
	}
	obj.cluster = client.ObjectKey{Namespace: key.Namespace, Name: obj.GetLabels()[clusterv1.ClusterNameLabel]}
	if obj.cluster.Name == "" {
		return nil // made by hand
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		if !controllerutil.ContainsFinalizer(obj, finalizer) {
			return nil
		}
		if err := release(ctx, obj); err != nil {
			return err
		}
		controllerutil.RemoveFinalizer(obj, finalizer)
		return client.IgnoreNotFound(p.client.Update(ctx, obj.Unstructured))
	}
	if release != nil && controllerutil.AddFinalizer(obj, finalizer) {
		if err := p.client.Update(ctx, obj.Unstructured); err != nil {
			return err
		}
	}
	return provide(ctx, obj)
}

// setStatus changes fields of the status, and leaves the others.
func (p *Provider) setStatus(ctx context.Context, obj object, fields map[string]any) error {
	before := obj.DeepCopy()
	for name, value := range fields {
		if err := unstructured.SetNestedField(obj.Object, value, "status", name); err != nil {
			return err
		}
	}
	return p.client.Status().Patch(ctx, obj.Unstructured, client.MergeFrom(before))
}

// createSecret publishes data of a Cluster, once.
func (p *Provider) createSecret(ctx context.Context, obj object, name string, value []byte) error {
	err := p.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.GetNamespace(), Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: obj.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": value},
	})
	return client.IgnoreAlreadyExists(err)
}
