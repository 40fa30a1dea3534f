// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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

// errGone ends a plan that somebody deleted.
var errGone = errors.New("the plan is gone")

// ask asks each cluster what becomes of it. Those that were slow come last. It returns nil if the plan is gone.
func (r *Reconciler) ask(ctx context.Context, p *addonsv1.AddonPlan, of *subject) (*plan.Sum, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	clusters, key := slices.Clone(of.clusters), client.ObjectKeyFromObject(p)
	slices.SortStableFunc(clusters, func(a, b target) int { return r.slowness(key, a) - r.slowness(key, b) })
	var adding sync.Mutex
	sum, noted := &plan.Sum{}, r.Clock.Now()
	each, ctx := errgroup.WithContext(ctx)
	each.SetLimit(atOnce)
	for _, c := range clusters {
		each.Go(func() error {
			if err := r.turn(ctx, key); err != nil {
				return err
			}
			request := plan.Request{
				Cluster: client.ObjectKey{Namespace: key.Namespace, Name: c.name}, Stack: of.stack.Name, Revision: of.revision, Inputs: of.inputs, Key: secret,
				RecordedValues: p.Spec.RecordedValues,
			}
			if !c.leaves {
				request.Spec = of.spec
			}
			is, err := r.preview(ctx, request)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			adding.Lock()
			defer adding.Unlock()
			switch {
			case err == nil:
				sum.Add(c.name, is)
			case errors.Is(err, plan.ErrSilent), errors.Is(err, context.DeadlineExceeded):
				sum.AddUnknown(c.name, true, plan.ErrSilent.Error())
			default:
				logf.FromContext(ctx).Error(err, "A cluster can't be planned", "cluster", c.name)
				sum.AddUnknown(c.name, false, "asking the cluster failed: see the log of the provider instance")
			}
			if r.Clock.Since(noted) < noteEvery {
				return nil
			}
			before := p.DeepCopy()
			p.Status.Clusters, noted = sum.Clusters(len(of.clusters)), r.Clock.Now()
			return r.write(ctx, before, p)
		})
	}
	if err := each.Wait(); errors.Is(err, errGone) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return sum, nil
}

func (r *Reconciler) slowness(of client.ObjectKey, c target) int {
	if r.Clusters.IsSlow(client.ObjectKey{Namespace: of.Namespace, Name: c.name}) {
		return 1
	}
	return 0
}

// preview asks one cluster. A panic is an error: it would end the process.
func (r *Reconciler) preview(ctx context.Context, request plan.Request) (is plan.Cluster, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = errors.New(deliver.Panicked(ctx, request.Cluster.String(), value))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, ofACluster)
	defer cancel()
	begun := r.Clock.Now()
	is, err = r.Clusters.Preview(ctx, request)
	clusterSeconds.Observe(r.Clock.Since(begun).Seconds())
	return is, err
}

// turn waits until there is no other work. It fails if the plan is gone.
func (r *Reconciler) turn(ctx context.Context, of client.ObjectKey) error {
	for {
		if err := r.Client.Get(ctx, of, &addonsv1.AddonPlan{}); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return errGone
			}
			return err
		}
		if !r.IsBusy() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.Clock.After(retry.Moment):
		}
	}
}
