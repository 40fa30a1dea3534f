// SPDX-License-Identifier: Apache-2.0

// Command source prints how many nodes each Shoot of a Gardener project has. It shows a source of one's
// own: at a Shoot's subresource adminkubeconfig, Gardener hands out kubeconfigs that end.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
)

// shoots reports the Shoots of one project.
type shoots struct {
	reader client.Reader
	garden kubernetes.Interface
	sink   fleet.Sink
	queue  atomic.Pointer[workqueue.TypedRateLimitingInterface[ctrl.Request]]
}

// Name implements fleet.Source: clusters are called "shoots#namespace/name".
func (s *shoots) Name() string { return "shoots" }

// SetupWithManager implements fleet.Source: a controller reports each Shoot.
func (s *shoots) SetupWithManager(mgr manager.Manager, sink fleet.Sink) (err error) {
	s.reader, s.sink = mgr.GetCache(), sink
	if s.garden, err = kubernetes.NewForConfig(mgr.GetConfig()); err != nil {
		return err
	}
	// A Shoot's status changes all the time.
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	captured := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		s.queue.Store(&queue)
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("shoots").For(shoot(), changed).WatchesRawSource(captured).Complete(s)
}

// Refresh implements fleet.Source: a kubeconfig expires soon, or the cluster refuses it.
func (s *shoots) Refresh(name multicluster.ClusterName) {
	if queue := s.queue.Load(); queue != nil {
		namespace, shoot, _ := strings.Cut(name.String(), "/")
		(*queue).Add(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: shoot}})
	}
}

// Reconcile tells the sink what is known of one Shoot.
func (s *shoots) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	name := multicluster.ClusterName(request.String())
	object := shoot()
	if err := s.reader.Get(ctx, request.NamespacedName, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			s.sink.Remove(name) // the connection ends; nothing is deleted in the cluster
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	kubeconfig, expires, err := s.adminKubeconfig(ctx, request)
	if err != nil {
		return ctrl.Result{}, err // what was reported before stays
	}
	s.sink.Set(name, fleet.Member{
		ID: string(object.UID), Origin: "Shoot " + request.String(), Labels: object.Labels,
		Kubeconfig: kubeconfig, Expires: expires,
	})
	return ctrl.Result{}, nil
}

// adminKubeconfig asks Gardener for a kubeconfig.
func (s *shoots) adminKubeconfig(ctx context.Context, request ctrl.Request) ([]byte, time.Time, error) {
	const body = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"AdminKubeconfigRequest","spec":{"expirationSeconds":3600}}`
	data, err := s.garden.CoreV1().RESTClient().Post().
		AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces", request.Namespace, "shoots", request.Name, "adminkubeconfig").
		Body([]byte(body)).SetHeader("Content-Type", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("asking for a kubeconfig of Shoot %s: %w", request, err)
	}
	var answer struct {
		Status struct {
			Kubeconfig          []byte
			ExpirationTimestamp metav1.Time
		}
	}
	err = json.Unmarshal(data, &answer)
	return answer.Status.Kubeconfig, answer.Status.ExpirationTimestamp.Time, err
}

func shoot() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot"}}
}

func main() {
	namespace := flag.String("namespace", "garden-dev", "namespace of the Gardener project")
	loopback := flag.Bool("allow-loopback", false, "accept kubeconfigs for servers on this host")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	clusters := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{&shoots{}}, AllowLoopback: *loopback})
	clusters.Subscribe(func(name multicluster.ClusterName) { go count(clusters, name) })
	if err := run(ctrl.SetupSignalHandler(), clusters, *namespace); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, clusters *fleet.Provider, namespace string) error {
	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), clusters, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	if err := clusters.SetupWithManager(mgr.GetLocalManager()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// count prints how many nodes a cluster has, or why that isn't known.
func count(clusters *fleet.Provider, name multicluster.ClusterName) {
	connection, ok := clusters.Connection(name)
	if !ok {
		fmt.Println(name, clusters.State(name).Message)
		return
	}
	nodes := &corev1.NodeList{}
	err := connection.Client().List(connection.Context(), nodes)
	fmt.Println(name, "nodes:", len(nodes.Items), "error:", err)
}
