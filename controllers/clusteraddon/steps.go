// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// pass is what one reconcile of a cluster that has a connection begins with.
type pass struct {
	// ca is written at the end. stored is as it was last written.
	ca, stored *addonsv1.ClusterAddon
	cluster    *member.Member
	workload   workload.Cluster
	memory     *remembered
	now        time.Time
	// removes says that the Cluster is being deleted, and waits for add-ons to be removed.
	removes bool
}

// gather returns what reads all that is known of the cluster.
func (r *Reconciler) gather(q pass) gather.Reader {
	return gather.Reader{
		Cache: r.Client, Direct: r.APIReader, Inputs: r.reader(q), Users: &r.users, Records: r.records,
		Workload: q.workload.Name, Running: q.workload.Conn.Version(), OutdatedSince: q.memory.outdatedSince, Now: q.now,
	}
}

// reader returns what reads the inputs of add-ons.
func (r *Reconciler) reader(q pass) inputs.Reader {
	return inputs.Reader{
		Sources: r.Sources, ClusterAddon: client.ObjectKeyFromObject(q.ca), Proofs: &q.memory.proofs, Again: gather.IsAskedAgain(q.ca),
		Values: layers.Reader{
			Renderer: r.Renderer, Sources: r.Values, Namespace: q.ca.Namespace, Cluster: q.cluster, Object: inputs.ObjectsFrom(r.provider, q.ca.Namespace),
		},
		Agreed: func(of deliver.Release) sets.Set[string] { return q.memory.addons.Of(of).Agreed },
	}
}

// renderer returns what renders add-ons.
func (r *Reconciler) renderer(q pass) rendering.Renderer {
	return rendering.Renderer{Sources: r.Sources, Renderer: r.Renderer, Kinds: r.kinds, Workload: q.workload, Proofs: &q.memory.proofs, Now: q.now}
}

// delivery returns what installs and upgrades the wanted add-ons.
func (r *Reconciler) delivery(q pass, seen *gather.Observed, leaving []deliver.Release) delivery.Delivery {
	return delivery.Delivery{
		Observed: seen, Inputs: r.reader(q), Renderer: r.renderer(q), Deliverer: r.Deliverer, Workload: q.workload, Watched: r.watched,
		Proofs: &q.memory.proofs, Memory: q.memory.addons, Turns: &r.inputTurns, Beside: r.beside, Others: r.Client, Leaving: leaving,
		NeedsAccount: r.RequireImpersonation, Clock: r.Clock,
	}
}

// removal returns what removes the add-ons that leave. Kept are those that stay.
func (r *Reconciler) removal(q pass, of removal.Unwanted, leaving []deliver.Summary, kept []addonsv1.AddonStatus) removal.Removal {
	return removal.Removal{
		Observed: of.Observed, Leaving: leaving, Kept: kept, Deliverer: r.Deliverer, Workload: q.workload, Proofs: of.Proofs, Memory: q.memory.addons,
		Contents: removal.Contents{Inputs: r.reader(q), Renderer: r.renderer(q), Deliverer: r.Deliverer, Target: q.workload.Target(), Known: r.contents},
	}
}
