// SPDX-License-Identifier: Apache-2.0

// Package workload reaches the workload cluster of a ClusterAddon.
package workload

import (
	"context"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Cluster is a workload cluster that has a connection.
type Cluster struct {
	// Name in the fleet.
	Name multicluster.ClusterName
	Conn *fleet.Connection
	// Namespace of the ClusterAddon.
	Namespace string
}

// Target returns the cluster as the deliverer takes it.
func (c Cluster) Target() deliver.Target {
	return deliver.Target{
		Name:      c.Name.String(),
		Client:    c.Conn.Client(),
		Dynamic:   c.Conn.Dynamic(),
		Secrets:   c.Conn.Secrets(),
		Discovery: c.Conn.Discovery,
		Context:   c.Conn.Context(),
	}
}

// As returns the cluster with the rights of a ServiceAccount there. The ServiceAccount is in the namespace
// with the name of the ClusterAddon's namespace. "" means the rights of the kubeconfig.
func (c Cluster) As(serviceAccount string) (deliver.Target, error) {
	target := c.Target()
	if serviceAccount == "" {
		return target, nil
	}
	actor, err := c.Conn.As("system:serviceaccount:" + c.Namespace + ":" + serviceAccount)
	if err != nil {
		return deliver.Target{}, err
	}
	target.Own, target.Client = target.Client, actor
	return target, nil
}

// Facts returns the facts that charts may ask about, read once for each connection. Missing are the group versions that
// can't be discovered now.
func (c Cluster) Facts(ctx context.Context) (facts job.Facts, missing []string, err error) {
	found, err := c.Conn.Facts(ctx)
	if err != nil {
		return job.Facts{}, nil, err
	}
	return job.Facts{KubeVersion: found.KubernetesVersion, APIVersions: found.APIVersions}, found.Incomplete, nil
}
