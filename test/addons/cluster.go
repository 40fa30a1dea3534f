// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/memory"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
	"github.com/cluster-chandler/chandler/test/must"
)

// Cluster is what the steps of a reconcile are given about a cluster that refuses each request.
type Cluster struct {
	gather.Observed
	Inputs    inputs.Reader
	Deliverer *deliver.Deliverer
	Workload  workload.Cluster
	Watched   *fleetwatch.Objects
	Proofs    *releases.Proofs
	Memory    *memory.Addons
	// Requests is how many there were.
	Requests *int
}

// Given returns a cluster that has these records, which are proven.
func Given(t testing.TB, records ...deliver.Summary) *Cluster {
	t.Helper()
	sources, err := source.New(source.Options{})
	must.Succeed(t, err)
	c := &Cluster{
		Observed:  gather.Observed{ClusterAddon: &addonsv1.ClusterAddon{}, Installed: Records(records...), Now: time.Now()},
		Deliverer: deliver.New(deliver.Options{}), Watched: fleetwatch.NewObjects(func(multicluster.ClusterName) {}), Proofs: Proofs(records...), Memory: memory.New(),
	}
	c.ClusterAddon.Namespace, c.ClusterAddon.Name = "team", "prod"
	c.Workload, c.Requests = Refusing(t)
	c.Inputs = inputs.Reader{
		Sources: sources, ClusterAddon: client.ObjectKeyFromObject(c.ClusterAddon), Proofs: c.Proofs,
		Values: layers.Reader{Namespace: c.ClusterAddon.Namespace, Cluster: &member.Member{}},
		Agreed: func(of deliver.Release) sets.Set[string] { return c.Memory.Of(of).Agreed },
	}
	return c
}

// Install has an add-on of a chart in a registry installed, by an older spec.
func (c *Cluster) Install(t testing.TB, name string, change func(*wanted.Addon)) (wanted.Addon, deliver.Summary) {
	t.Helper()
	a, record := InRegistry(t, c.Inputs.Sources, name, change)
	c.Record(record)
	return a, record
}

// Record has a record in the cluster, which is proven.
func (c *Cluster) Record(record deliver.Summary) {
	c.Installed[record.Release] = record
	c.Proofs.Note(record.Release, record.Proof())
}

// Renderer returns what renders add-ons of the cluster, but for a chart.
func (c *Cluster) Renderer() rendering.Renderer {
	return rendering.Renderer{Sources: c.Inputs.Sources, Workload: c.Workload, Proofs: c.Proofs, Now: c.Now}
}

// Scheme returns the types of a management cluster.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, errors.Join(clientgoscheme.AddToScheme(scheme), addonsv1.AddToScheme(scheme)))
	return scheme
}
