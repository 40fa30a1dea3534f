// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// namespace of all Clusters.
const namespace = "fleet"

// user is the name that Chandler, the Helm provider and the floor have at API servers.
const user = "chandler"

// size says how large a fleet is.
type size struct {
	Clusters int `json:"clusters"`
	// Servers is the number of API servers that the clusters share; of no more than there are clusters.
	Servers   int `json:"servers"`
	Instances int `json:"instances"` // of Chandler, each with a share of the clusters
	Renderers int `json:"renderers"` // of each instance
	Addons    int `json:"addons"`    // four, or five; small ones of each stack if Stacks isn't zero
	// Stacks have small add-ons and all clusters, and IdleStacks have no cluster.
	Stacks     int `json:"stacks,omitempty"`
	IdleStacks int `json:"idleStacks,omitempty"`
	// RTT is the round trip time to a cluster that has an API server of its own.
	RTT time.Duration `json:"rtt,omitempty"`
	// MemoryLimit is the GOMEMLIMIT of each instance, "" for none.
	MemoryLimit string `json:"memoryLimit,omitempty"`
}

// fleet is a management cluster, its workload clusters, and the managers.
type fleet struct {
	testing.TB
	size     size
	hub      *apiserver.Server
	servers  []*apiserver.Server
	clusters []*cluster
	managers []*manager.Process
	other    *process.Process // in place of them: the Helm provider
}

// cluster is a workload cluster.
type cluster struct {
	*virtualcluster.Address
	name   string
	server *apiserver.Server // which it may share
}

// startFleet returns once all clusters are connected. Charts without a registry are in a folder.
func startFleet(t testing.TB, s size, charts string) *fleet {
	g := NewWithT(t)
	f := &fleet{TB: t, size: s}
	f.startManagement("management", filepath.Join(world.root, "config/crd/bases"))
	f.addClusters("c")
	f.makeClusters()
	hubUser, err := f.hub.AddUser(user, "system:masters")
	g.Expect(err).NotTo(HaveOccurred())
	for i := range s.Instances {
		args := []string{"--namespace=" + namespace, "--instance-namespace=" + namespace, "--artifact-root=" + charts, fmt.Sprint("--render-workers=", s.Renderers)}
		if s.Instances > 1 {
			args = append(args, "--watch-filter="+filterOf(i), "--leader-elect-namespace="+namespace, fmt.Sprintf("--instance-name=i%d", i))
		}
		f.managers = append(f.managers, manager.Start(t, manager.Options{
			Name: fmt.Sprint("manager", i), Binary: world.binary, Kubeconfig: hubUser.Kubeconfig, Args: args, Env: []string{"GOMEMLIMIT=" + s.MemoryLimit},
		}))
	}
	f.await("connected", connected)
	return f
}

// filterOf returns the label of what an instance manages.
func filterOf(instance int) string { return fmt.Sprint("i", instance) }

// startManagement starts the management cluster, with a provider's CRDs beside those of Cluster API.
func (f *fleet) startManagement(name, providerCRDs string) {
	g := NewWithT(f.TB)
	crds, err := apiserver.ClusterAPICRDs(f.Context(), "clusters", "clusterclasses")
	g.Expect(err).NotTo(HaveOccurred())
	f.hub, err = apiserver.Start(f.Context(), world.dir, controlplane.Options{Name: name, CRDPaths: append(crds, providerCRDs)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.hub.GrantScopes(f.Context())).To(Succeed())
	g.Expect(f.hub.Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
}

// addClusters starts API servers, and has the clusters on them.
func (f *fleet) addClusters(prefix string) {
	g := NewWithT(f.TB)
	users := make([]*controlplane.User, f.size.Servers)
	for i := range f.size.Servers {
		s, err := apiserver.Start(f.Context(), world.dir, controlplane.Options{Name: fmt.Sprint(prefix, "-server-", i)})
		g.Expect(err).NotTo(HaveOccurred())
		f.servers = append(f.servers, s)
		users[i], err = s.AddUser(user, "system:masters")
		g.Expect(err).NotTo(HaveOccurred())
	}
	authority := virtualcluster.NewAuthority(f.TB)
	for i := range f.size.Clusters {
		on := i % f.size.Servers
		c := &cluster{name: fmt.Sprintf("%s%04d", prefix, i), server: f.servers[on]}
		if f.size.Clusters > f.size.Servers {
			c.Address = authority.New(f.TB, users[on], c.name)
		} else {
			c.Address = virtualcluster.Direct(f.TB, users[on], f.size.RTT/2)
		}
		f.clusters = append(f.clusters, c)
	}
}

// makeClusters makes the Cluster objects, and has workloads be ready.
func (f *fleet) makeClusters() {
	for _, s := range f.servers {
		simulate(f.TB, s.Clientset)
	}
	f.each(func(i int, c *cluster) {
		labels := map[string]string{clusterv1.ClusterNameLabel: c.name}
		if f.size.Instances > 1 {
			labels[clusterv1.WatchLabel] = filterOf(i % f.size.Instances)
		}
		f.makeCluster(c, labels)
	})
}

// each calls a function for all clusters, eight at a time.
func (f *fleet) each(do func(i int, c *cluster)) {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < len(f.clusters); i += 8 {
				do(i, f.clusters[i])
			}
		})
	}
	all.Wait()
}

func (f *fleet) makeCluster(of *cluster, labels map[string]string) {
	g := NewWithT(f.TB)
	g.Expect(f.hub.Create(f.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: of.name + "-kubeconfig", Labels: labels},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": of.Kubeconfig},
	})).To(Succeed())
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name, c.Labels = namespace, of.name, labels
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	g.Expect(f.hub.Create(f.Context(), c)).To(Succeed())
	c.Status.Initialization.ControlPlaneInitialized, c.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
	g.Expect(f.hub.Status().Update(f.Context(), c)).To(Succeed())
}

// patience is how long a phase may take on a busy machine.
func (f *fleet) patience() time.Duration {
	return 10*time.Minute + time.Duration(f.size.Clusters)*5*time.Second
}

// stop ends all of the fleet.
func (f *fleet) stop() {
	for _, m := range f.managers {
		m.Stop(f.TB)
	}
	if f.other != nil {
		f.other.Kill()
	}
	servers := f.servers
	if f.hub != nil {
		servers = append(servers, f.hub)
	}
	for _, s := range servers {
		if err := s.Stop(); err != nil {
			f.Error(err)
		}
	}
}
