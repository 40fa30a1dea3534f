// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// Subject is a provider under test, and how it is told of clusters.
type Subject struct {
	Provider multicluster.Provider
	// Scheme is that of the manager, with the kinds that the provider reads. Nil means client-go's.
	Scheme *runtime.Scheme
	// Setup registers the provider with the manager, before that starts.
	Setup func(context.Context, mcmanager.Manager) error
	// Add reports a cluster, or another kubeconfig of one.
	Add func(ctx context.Context, name string, kubeconfig []byte) error
	// Remove reports that a cluster is gone.
	Remove func(ctx context.Context, name string) error
	// ClusterName returns how the provider calls a cluster that was added.
	ClusterName func(name string) multicluster.ClusterName
}

// Servers are what the cases need: API servers of which each grants its config everything.
type Servers struct {
	// Local is that of the manager. First and Second are those of the fleet.
	Local, First, Second *rest.Config
	// Dead is the kubeconfig of one more cluster, which answers but never lists. It is added first,
	// if it is there.
	Dead []byte
	// Patience is how long a case may take.
	Patience time.Duration
}

// Result is how a case ended.
type Result struct {
	Case string
	Err  error // nil: passed
}

// mark is the key of a ConfigMap that the tested controller sets.
const mark = "mark"

// Conform runs an ordinary controller for all clusters of a provider, and returns how each
// case ended. The cases are those of multicluster-runtime's own tests of its kubeconfig
// provider (providers/kubeconfig/provider_test.go).
func Conform(ctx context.Context, name string, subject Subject, servers Servers) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mgr, err := mcmanager.New(servers.Local, subject.Provider, manager.Options{
		Scheme:     subject.Scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := subject.Setup(ctx, mgr); err != nil {
		return nil, fmt.Errorf("setting up the provider: %w", err)
	}
	c := &conformance{subject: subject, servers: servers, mgr: mgr, namespace: name, reconciled: map[multicluster.ClusterName]int{}}
	if err := c.setup(); err != nil {
		return nil, err
	}
	c.note("a field is indexed before the start", mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "type",
		func(o client.Object) []string { return []string{o.GetLabels()["type"]} }))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.run(ctx)
	cancel()
	select {
	case err = <-ended:
	case <-time.After(servers.Patience):
		err = errors.New("it continues")
	}
	c.note("the manager ends", err)
	return c.results, c.failed
}

type conformance struct {
	subject       Subject
	servers       Servers
	mgr           mcmanager.Manager
	namespace     string
	first, second client.Client
	results       []Result
	failed        error // what no case is about

	mu         sync.Mutex
	reconciled map[multicluster.ClusterName]int
}

func (c *conformance) note(name string, err error) { c.results = append(c.results, Result{name, err}) }

// check waits until a case passes.
func (c *conformance) check(ctx context.Context, name string, passes func(context.Context) error) {
	last := errors.New("it never ended")
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, c.servers.Patience, true, func(ctx context.Context) (bool, error) {
		err := passes(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		last = nil
	}
	c.note(name, last)
}

// setup adds the controller, and the clients by which the cases look at the clusters.
func (c *conformance) setup() (err error) {
	if c.first, err = client.New(c.servers.First, client.Options{}); err != nil {
		return err
	}
	if c.second, err = client.New(c.servers.Second, client.Options{}); err != nil {
		return err
	}
	return mcbuilder.ControllerManagedBy(c.mgr).Named("conformance").For(&corev1.ConfigMap{}).
		WithOptions(mccontroller.Options{SkipNameValidation: ptr.To(true)}).Complete(mcreconcile.Func(c.reconcile))
}

// reconcile marks each ConfigMap of the test.
func (c *conformance) reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	c.mu.Lock()
	c.reconciled[request.ClusterName]++
	c.mu.Unlock()
	cluster, err := c.mgr.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	object := &corev1.ConfigMap{}
	if err := cluster.GetClient().Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Labels["type"] != "tested" || object.Data[mark] == "set" {
		return ctrl.Result{}, nil
	}
	object.Data = map[string]string{mark: "set"}
	return ctrl.Result{}, cluster.GetClient().Update(ctx, object)
}

// run does what happens to a fleet, one thing after the other.
func (c *conformance) run(ctx context.Context) {
	if c.servers.Dead != nil {
		c.do(c.subject.Add(ctx, "aa-dead", c.servers.Dead))
	}
	for _, in := range []client.Client{c.first, c.second} {
		c.do(in.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}))
	}
	c.create(ctx, c.first, "there")
	c.do(c.subject.Add(ctx, "stays", KubeconfigOf(c.servers.First)))
	c.do(c.subject.Add(ctx, "moves", KubeconfigOf(c.servers.First)))
	c.check(ctx, "an object that was there is reconciled", c.marked(c.first, "there"))
	c.create(ctx, c.first, "new")
	c.check(ctx, "a new object is reconciled", c.marked(c.first, "new"))
	c.reads(ctx)

	c.do(c.subject.Add(ctx, "moves", KubeconfigOf(c.servers.Second)))
	c.create(ctx, c.second, "moved")
	c.check(ctx, "a kubeconfig is followed to another server", c.marked(c.second, "moved"))
	c.removal(ctx)
}

// do notes the error of what no case is about.
func (c *conformance) do(err error) { c.failed = errors.Join(c.failed, err) }

// reads looks at a cluster through the manager.
func (c *conformance) reads(ctx context.Context) {
	name := c.subject.ClusterName("stays")
	c.check(ctx, "the manager returns the cluster", func(ctx context.Context) error {
		_, err := c.mgr.GetCluster(ctx, name)
		return err
	})
	read := func(does string, do func(context.Context, client.Reader) error) {
		c.check(ctx, "the cache "+does, func(ctx context.Context) error {
			cluster, err := c.mgr.GetCluster(ctx, name)
			if err != nil {
				return err
			}
			return do(ctx, cluster.GetCache())
		})
	}
	read("is queried by the index", func(ctx context.Context, cache client.Reader) error {
		return listsTwo(ctx, cache, client.InNamespace(c.namespace), client.MatchingFields{"type": "tested"})
	})
	read("lists", func(ctx context.Context, cache client.Reader) error {
		return listsTwo(ctx, cache, client.InNamespace(c.namespace), client.MatchingLabels{"type": "tested"})
	})
	read("gets a kind that nobody watches", func(ctx context.Context, cache client.Reader) error {
		return cache.Get(ctx, client.ObjectKey{Name: c.namespace}, &corev1.Namespace{})
	})
}

func listsTwo(ctx context.Context, cache client.Reader, options ...client.ListOption) error {
	objects := &corev1.ConfigMapList{}
	if err := cache.List(ctx, objects, options...); err != nil {
		return err
	}
	if len(objects.Items) != 2 {
		return fmt.Errorf("%d objects, not 2", len(objects.Items))
	}
	return nil
}

// removal takes a cluster away, and sees that nothing is done in it any more.
func (c *conformance) removal(ctx context.Context) {
	name := c.subject.ClusterName("stays")
	c.do(c.subject.Remove(ctx, "stays"))
	c.check(ctx, "a removed cluster is not found", func(ctx context.Context) error {
		if _, err := c.mgr.GetCluster(ctx, name); !errors.Is(err, multicluster.ErrClusterNotFound) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	before := c.reconciliations(name)
	c.create(ctx, c.first, "late")
	c.create(ctx, c.second, "other")
	c.check(ctx, "another cluster's object is reconciled after that", c.marked(c.second, "other"))
	var err error
	if n := c.reconciliations(name) - before; n > 0 {
		err = fmt.Errorf("%d times", n)
	}
	c.note("nothing of a removed cluster is reconciled", err)
}

func (c *conformance) reconciliations(name multicluster.ClusterName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconciled[name]
}

// create makes a ConfigMap in a cluster.
func (c *conformance) create(ctx context.Context, in client.Client, name string) {
	c.do(in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, Name: name, Labels: map[string]string{"type": "tested"},
	}}))
}

// marked returns a case that passes once the controller has marked a ConfigMap.
func (c *conformance) marked(in client.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		object := &corev1.ConfigMap{}
		if err := in.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, object); err != nil {
			return err
		}
		if object.Data[mark] != "set" {
			return fmt.Errorf("ConfigMap %s was not reconciled", name)
		}
		return nil
	}
}
