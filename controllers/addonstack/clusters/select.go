// SPDX-License-Identifier: Apache-2.0

// Package clusters finds the clusters that an AddonStack selects, and counts how far they are.
package clusters

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// Selected are the clusters of a stack, with those of its namespace.
type Selected struct {
	Spec    *addonsv1.AddonStackSpec  // that selects
	Members map[string]*member.Member // of the namespace, by the names of their ClusterAddons
	All     *addonsv1.ClusterAddonList
	// Clusters are those that the stack selects.
	Clusters []standing.Cluster
}

// Select returns the clusters of a namespace that a spec selects.
func Select(ctx context.Context, cache client.Reader, members *member.Inventory, namespace string, spec *addonsv1.AddonStackSpec) (*Selected, error) {
	there, err := members.List(ctx, namespace)
	if err != nil {
		return nil, err
	}
	is := &Selected{Spec: spec, Members: there, All: &addonsv1.ClusterAddonList{}}
	if err := cache.List(ctx, is.All, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", namespace, err)
	}
	is.Clusters = standing.Select(namespace, spec, there, is.All.Items)
	return is, nil
}
