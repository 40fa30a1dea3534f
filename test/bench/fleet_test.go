// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/suite"
	"github.com/cluster-chandler/chandler/test/wait"
)

// patience is how long a phase may take on a busy machine.
const patience = 10 * time.Minute

// namespace of all Clusters.
const namespace = "fleet"

var world struct{ root, dir, binary string }

func TestMain(m *testing.M) {
	suite.Suite{Name: "bench", Parallel: 1, Prepare: func(ctx context.Context, root, dir string) (err error) {
		world.root, world.dir = root, dir
		world.binary, err = manager.Build(ctx, root, dir, "v0.0.0")
		return err
	}}.Run(m)
}

// Variables that say what is measured.
const (
	clustersEnv = "CHANDLER_BENCH_CLUSTERS" // how many, each with an API server
	runsEnv     = "CHANDLER_BENCH_RUNS"     // how often, by default once
	outEnv      = "CHANDLER_BENCH_OUT"      // where the results go, as JSON and Markdown
)

// TestFleet measures installation, an upgrade of one value, a restart, and a while at rest.
func TestFleet(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(clustersEnv))
	if err != nil {
		t.Skip(clustersEnv + " says how many clusters there are to be")
	}
	runs, err := strconv.Atoi(os.Getenv(runsEnv))
	if err != nil {
		runs = 1
	}
	var results []result
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) { results = append(results, measure(t, n)) })
	}
	if t.Failed() {
		return
	}
	table := markdown(n, results)
	t.Log("\n" + table)
	if out := os.Getenv(outEnv); out != "" {
		if err := write(out, results, table); err != nil {
			t.Fatal(err)
		}
	}
}

// fleet is a management cluster, its workload clusters, and the manager.
type fleet struct {
	*testing.T
	hub      *apiserver.Server
	clusters []*apiserver.Server
	manager  *manager.Process
	other    *process.Process // in place of it: the Helm provider
}

// measure runs all phases once.
func measure(t *testing.T, n int) result {
	f := startFleet(t, n)
	r := result{}

	r.Install, r.Upgrade = f.install(), f.upgrade()
	f.settle()
	r.Drift = f.drift()
	f.settle()
	r.PeakMiB = f.memory("VmHWM")
	r.Restart = f.restart()

	begin := f.snapshot()
	time.Sleep(30 * time.Second)
	r.Rest = f.since(begin)
	r.RestMiB = f.memory("VmRSS")

	objects := f.installed()
	f.stop()
	r.Floor = measureFloor(t, n, objects)
	if checkout := os.Getenv(helmProviderEnv); checkout != "" {
		r.HelmProvider = measureHelmProvider(t, n, checkout)
	}
	return r
}

// startFleet returns once all clusters are connected.
func startFleet(t *testing.T, n int) *fleet {
	g := NewWithT(t)
	f := &fleet{T: t}
	f.startManagement("management", filepath.Join(world.root, "config/crd/bases"))
	f.addClusters("c", n)
	user, err := f.hub.AddUser("chandler", "system:masters")
	g.Expect(err).NotTo(HaveOccurred())
	f.manager = manager.Start(t, manager.Options{
		Binary: world.binary, Kubeconfig: user.Kubeconfig,
		Args: []string{"--namespace=" + namespace, "--instance-namespace=" + namespace, "--artifact-root=" + realdata.Path(t, "charts"), "--render-workers=2"},
	})
	f.awaitAll("is connected", func(ca *addonsv1.ClusterAddon) bool {
		return conditions.IsTrue(ca, addonsv1.ClusterReachableCondition)
	})
	return f
}

// startManagement starts the management cluster, with a provider's CRDs beside those of Cluster API.
func (f *fleet) startManagement(name, providerCRDs string) {
	g := NewWithT(f.T)
	crds, err := apiserver.ClusterAPICRDs(f.Context(), "clusters", "clusterclasses")
	g.Expect(err).NotTo(HaveOccurred())
	f.hub, err = apiserver.Start(f.Context(), world.dir, controlplane.Options{Name: name, CRDPaths: append(crds, providerCRDs)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.hub.Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
}

// addClusters starts workload clusters, and makes their Clusters.
func (f *fleet) addClusters(prefix string, n int) {
	g := NewWithT(f.T)
	for i := range n {
		s, err := apiserver.Start(f.Context(), world.dir, controlplane.Options{Name: fmt.Sprint(prefix, i)})
		g.Expect(err).NotTo(HaveOccurred())
		simulate(f.T, s.Clientset)
		user, err := s.AddUser("chandler", "system:masters")
		g.Expect(err).NotTo(HaveOccurred())
		f.clusters = append(f.clusters, s)
		f.makeCluster(s.Name(), user.Kubeconfig)
	}
}

func (f *fleet) makeCluster(name string, kubeconfig []byte) {
	g := NewWithT(f.T)
	g.Expect(f.hub.Create(f.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: name}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig},
	})).To(Succeed())
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name = namespace, name
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	g.Expect(f.hub.Create(f.Context(), c)).To(Succeed())
	c.Status.Initialization.ControlPlaneInitialized, c.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
	g.Expect(f.hub.Status().Update(f.Context(), c)).To(Succeed())
}

// stack returns the add-ons: 49 objects, and 7 of hooks. One value is other in each generation.
func (f *fleet) stack(generation int) *addonsv1.AddonStack {
	values := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name = namespace, "platform"
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	s.Spec.Addons = []addonsv1.Addon{
		{Name: "cilium", Namespace: "kube-system", Chart: addonsv1.ChartSource{Path: "cilium-1.19.5.tgz"}, ValuesTemplate: "cluster:\n  name: '{{ .Cluster.metadata.name }}'\n"},
		{Name: "metrics-server", Namespace: "kube-system", Chart: addonsv1.ChartSource{Path: "metrics-server-3.13.1.tgz"},
			Values: values(fmt.Sprintf(`{"apiService": {"create": false}, "replicas": %d}`, generation))},
		{Name: "ingress-nginx", Namespace: "ingress-nginx", Chart: addonsv1.ChartSource{Path: "ingress-nginx-4.15.1.tgz"}, Values: values(`{"controller": {"service": {"type": "ClusterIP"}}}`)},
		{Name: "kube-state-metrics", Namespace: "monitoring", Chart: addonsv1.ChartSource{Path: "kube-state-metrics-8.4.0.tgz"}},
	}
	return s
}

// await returns once all clusters have a generation of the stack.
func (f *fleet) await(generation int64) {
	f.Helper()
	f.awaitAll("is ready", func(ca *addonsv1.ClusterAddon) bool {
		ready := conditions.Get(ca, addonsv1.ReadyCondition)
		current := len(ca.Status.Addons) == 4
		for _, a := range ca.Status.Addons {
			current = current && a.Phase == addonsv1.AddonReady && (a.Name != "metrics-server" || a.Revision == int32(generation))
		}
		return current && ready != nil && ready.Status == metav1.ConditionTrue
	})
}

// settle returns once no cluster has anything left to do.
func (f *fleet) settle() {
	f.Helper()
	last, same := 0, 0
	wait.Until(f.T, patience, "nothing happens any more", func() error {
		now := f.requests()
		if same++; now != last {
			last, same = now, 0
		}
		if same < 20 {
			return fmt.Errorf("%d requests", now)
		}
		return nil
	})
}

func (f *fleet) awaitAll(is string, check func(*addonsv1.ClusterAddon) bool) {
	f.Helper()
	wait.Until(f.T, patience, "each cluster "+is, func() error {
		all := &addonsv1.ClusterAddonList{}
		if err := f.hub.List(f.Context(), all, client.InNamespace(namespace)); err != nil {
			return err
		}
		done := 0
		for i := range all.Items {
			if check(&all.Items[i]) {
				done++
			}
		}
		if done < len(f.clusters) {
			return fmt.Errorf("%d of %d", done, len(f.clusters))
		}
		return nil
	})
}

// stop ends all of the fleet.
func (f *fleet) stop() {
	if f.manager != nil {
		f.manager.Stop(f.T)
	} else {
		f.other.Kill()
	}
	for _, s := range append(f.clusters, f.hub) {
		if err := s.Stop(); err != nil {
			f.Error(err)
		}
	}
}
