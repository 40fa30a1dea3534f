// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Fleet is what was read, in the order of the API server: by namespace and name.
type Fleet struct {
	Instances []addonsv1.ProviderInstance
	Stacks    []addonsv1.AddonStack
	Clusters  []addonsv1.ClusterAddon
	// InstancesHidden says that the user may not list ProviderInstances.
	InstancesHidden bool
}

// Scope is what is to be read.
type Scope struct {
	Namespace string          // "" for all
	Stacks    labels.Selector // of AddonStacks; nil for all
}

// page is how many objects are read with one request: so a large fleet needs little memory beside what is kept of it.
const page = 100

// Read reads all three kinds. ProviderInstances are read in all namespaces, as they work for others than their own.
func Read(ctx context.Context, c client.Reader, scope Scope) (*Fleet, error) {
	f := &Fleet{}
	if err := f.ReadInstances(ctx, c); err != nil {
		return nil, err
	}
	if err := f.readStacks(ctx, c, scope); err != nil {
		return nil, err
	}
	return f, f.ReadClusters(ctx, c, scope)
}

// ReadInstances reads ProviderInstances.
func (f *Fleet) ReadInstances(ctx context.Context, c client.Reader) error {
	instances := &addonsv1.ProviderInstanceList{}
	err := pages(ctx, c, instances, func() { f.Instances = append(f.Instances, instances.Items...) })
	if apierrors.IsForbidden(err) {
		f.InstancesHidden, err = true, nil
	}
	if err != nil {
		return fmt.Errorf("listing ProviderInstances: %w", err)
	}
	return nil
}

func (f *Fleet) readStacks(ctx context.Context, c client.Reader, scope Scope) error {
	in := []client.ListOption{client.InNamespace(scope.Namespace)}
	if scope.Stacks != nil {
		in = append(in, client.MatchingLabelsSelector{Selector: scope.Stacks})
	}
	stacks := &addonsv1.AddonStackList{}
	if err := pages(ctx, c, stacks, func() { f.Stacks = append(f.Stacks, stacks.Items...) }, in...); err != nil {
		return fmt.Errorf("listing AddonStacks: %w", err)
	}
	return nil
}

// ReadClusters reads ClusterAddons. Much of them is left out: most of a large fleet is well, and nobody asks further.
func (f *Fleet) ReadClusters(ctx context.Context, c client.Reader, scope Scope) error {
	clusters := &addonsv1.ClusterAddonList{}
	keep := func() {
		for i := range clusters.Items {
			trim(&clusters.Items[i])
		}
		f.Clusters = append(f.Clusters, clusters.Items...)
	}
	if err := pages(ctx, c, clusters, keep, client.InNamespace(scope.Namespace)); err != nil {
		return fmt.Errorf("listing ClusterAddons: %w", err)
	}
	return nil
}

// trim drops what no summary shows.
func trim(ca *addonsv1.ClusterAddon) {
	ca.ManagedFields, ca.Labels, ca.Annotations, ca.OwnerReferences = nil, nil, nil, nil
	for i := range ca.Status.Addons {
		a := &ca.Status.Addons[i]
		a.Digest, a.RecordDigest, a.ServiceAccountName = "", "", ""
		if a.Drift != nil && a.Drift.Objects == 0 {
			a.Drift.LastManagers, a.Drift.Message = nil, ""
		}
	}
}

// pages lists all objects of a kind, and calls keep with each page in the list.
func pages(ctx context.Context, c client.Reader, list client.ObjectList, keep func(), options ...client.ListOption) error {
	for {
		if err := c.List(ctx, list, append(options, client.Limit(page), client.Continue(list.GetContinue()))...); err != nil {
			return err
		}
		keep()
		if list.GetContinue() == "" {
			return nil
		}
	}
}
