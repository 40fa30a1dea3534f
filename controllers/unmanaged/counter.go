// SPDX-License-Identifier: Apache-2.0

package unmanaged

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// interval is the time between two counts. A list of metadata from the API server's cache costs it little; a watch would keep
// all Clusters in the memory of the webhooks, and end these where there is no right to it.
const interval = time.Minute

// Counter is the only writer of status.unmanagedClusters. Each replica runs it: they find the same.
//
// It needs the right to list Clusters, and to patch providerinstances/status. No marker says so here, since instances must not
// have the latter.
type Counter struct {
	client.Client
	APIReader client.Reader
	Clock     clock.Clock
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Counter) NeedLeaderElection() bool { return false }

// Start counts until the context ends. A failure is logged once.
func (c *Counter) Start(ctx context.Context) error {
	logged := false
	for {
		err := c.Count(ctx)
		if err != nil && !logged && ctx.Err() == nil {
			logf.FromContext(ctx).Info("Clusters that no instance manages can't be counted", "error", err.Error())
		}
		logged = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-c.Clock.After(interval):
		}
	}
}

// Count counts once, and writes the statuses that are to change.
func (c *Counter) Count(ctx context.Context) error {
	clusters, instances := &metav1.PartialObjectMetadataList{}, &addonsv1.ProviderInstanceList{}
	clusters.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	if err := c.APIReader.List(ctx, clusters, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	if err := c.List(ctx, instances); err != nil {
		return fmt.Errorf("listing ProviderInstances: %w", err)
	}
	for i, n := range Count(clusters.Items, instances.Items) {
		pi := &instances.Items[i]
		if pi.Status.UnmanagedClusters == n {
			continue
		}
		before := pi.DeepCopy()
		pi.Status.UnmanagedClusters = n
		if err := c.Status().Patch(ctx, pi, client.MergeFrom(before)); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("writing status.unmanagedClusters of ProviderInstance %s: %w", client.ObjectKeyFromObject(pi), err)
		}
	}
	return nil
}
