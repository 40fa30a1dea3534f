// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Clusters are asked so many at a time, for so long each. Every now and then the status says how many were.
const (
	atOnce     = 4
	ofACluster = time.Minute
	noteEvery  = 5 * time.Second
)

// ask asks each cluster what becomes of it. Those that were slow come last.
func (r *Reconciler) ask(ctx context.Context, p *addonsv1.AddonPlan, of *subject) (*plan.Sum, error) {
	clusters := slices.Clone(of.Clusters)
	isSlow := func(i int) bool {
		return r.Clusters.IsSlow(client.ObjectKey{Namespace: p.Namespace, Name: clusters[i]})
	}
	sort.SliceStable(clusters, func(i, j int) bool { return !isSlow(i) && isSlow(j) })
	var adding sync.Mutex
	sum, noted := &plan.Sum{}, r.Clock.Now()
	each, ctx := errgroup.WithContext(ctx)
	each.SetLimit(atOnce)
	for _, name := range clusters {
		each.Go(func() error {
			if err := r.turn(ctx, client.ObjectKeyFromObject(p)); err != nil {
				return err
			}
			request := of.request
			if request.Cluster.Name = name; of.leaves.Has(name) {
				request.Spec = nil
			}
			is := r.preview(ctx, request)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			adding.Lock()
			defer adding.Unlock()
			if sum.Add(name, is); r.Clock.Since(noted) < noteEvery {
				return nil
			}
			before := p.DeepCopy()
			p.Status.Clusters, noted = sum.Clusters(len(of.Clusters)), r.Clock.Now()
			return r.Statuses.Patch(ctx, before, p)
		})
	}
	return sum, each.Wait()
}

// preview asks one cluster. It says so if that fails. A panic would end the process.
func (r *Reconciler) preview(ctx context.Context, request plan.Request) (is []plan.Addon) {
	defer func() {
		if value := recover(); value != nil {
			is = []plan.Addon{plan.In(plan.NotChecked, deliver.ReasonInternalError, deliver.Panicked(ctx, request.Cluster.String(), value))}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, ofACluster)
	defer cancel()
	begun := r.Clock.Now()
	is, err := r.Clusters.Preview(ctx, request)
	clusterSeconds.Observe(r.Clock.Since(begun).Seconds())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return plan.Silent()
	case err != nil:
		logf.FromContext(ctx).Error(err, "A cluster can't be planned", "cluster", request.Cluster.Name)
		return []plan.Addon{plan.In(plan.NotChecked, "", "Asking the cluster failed: see the log of the provider instance")}
	}
	return is
}

// turn waits until there is no other work. It fails if the plan is gone, which isn't found then, or has waited for its time to live.
func (r *Reconciler) turn(ctx context.Context, of client.ObjectKey) error {
	for {
		p := &addonsv1.AddonPlan{}
		switch err := r.Client.Get(ctx, of, p); {
		case err != nil:
			return err
		case !r.IsBusy():
			return nil
		case r.left(p) <= 0:
			return waits("other work took all of the plan's time to live")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.Clock.After(retry.Moment):
		}
	}
}
