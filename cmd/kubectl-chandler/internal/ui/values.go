// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/origins"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/deliver/redacted"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// patience is how long the view waits for a workload cluster.
const patience = 10 * time.Second

// valuesPage has the values of an add-on on a cluster, nil if they couldn't be read.
type valuesPage struct {
	Cluster *addonsv1.ClusterAddon
	Origins *summary.Origins
}

// valuesView reads the release record on the workload cluster. If that fails, the page says so: the management cluster answered.
func valuesView(q *request, p *page) error {
	in, addon, at := q.PathValue("in"), q.PathValue("addon"), q.cluster()
	isAsked := func(a addonsv1.AddonStatus) bool { return a.Namespace == in && a.Name == addon }
	if at < 0 || !slices.ContainsFunc(q.fleet.Clusters[at].Status.Addons, isAsked) {
		return errNotFound
	}
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	defer cancel()
	is := valuesPage{Cluster: &q.fleet.Clusters[at]}
	var release *redacted.Release
	workload, err := observed.Workload(ctx, q.client, is.Cluster, "")
	if err == nil {
		release, err = redacted.Read(ctx, workload, in, addon)
	}
	if err == nil {
		is.Origins = origins.Reader{Client: q.client, Others: q.others, Cluster: is.Cluster}.Of(ctx, release, addon)
	}
	if err != nil {
		p.Problem = err
	}
	p.View, p.Title, p.Of, p.At = "values", "Values of "+addon+" on cluster "+is.Cluster.Name, is, time.Now()
	p.Command = "kubectl chandler get values " + is.Cluster.Name + " " + addon + " --origins -n " + is.Cluster.Namespace
	return nil
}
